import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { readAccountMoney } from '../../../shared/accounts/account-money.ts';
import { eventually } from '../../support/eventually.ts';
import type { Configuration } from '../../support/gateway.ts';
import { JobRecords, jobIdOf } from '../../support/job-records.ts';
import { makeLimitedAccount } from '../../support/limited-account.ts';
import {
  type Answer,
  beginStream,
  type FixtureVendor,
  sendJson,
  startFixtureVendor,
} from '../../vendors/contracts/fixture-vendor.ts';

/** A minute of audio with 16,000 samples a second, at which it is held as 16 minutes. */
const minute = new Blob([Buffer.alloc(1_920_000)], { type: 'audio/wav' });
const said = 'The lock keeper opened the upper gate before the second boat came in sight of the harbour wall.';
const credit = 10_000_000_000;

const configuration = (baseUrl: string): Configuration => ({
  routing: { attempts: 1 },
  vendors: { ear: { like: 'openai', base_url: baseUrl, api_keys: ['any'] } },
  models: {
    timed: {
      ...{ capability: 'transcription', prices: { second: 0.0001 }, transcription: { timestamps: true } },
      routes: [{ vendor: 'ear', model: 'whisper' }],
    },
    counted: {
      ...{ capability: 'transcription', prices: { input: 2.5, audio_input: 6, output: 10 } },
      ...{ transcription: { streams: true, diarizes: true }, routes: [{ vendor: 'ear', model: 'transcribe' }] },
    },
    mouth: {
      ...{ capability: 'speech', prices: { input: 0.6, output: 12 }, speech: { formats: ['mp3'], events: true } },
      routes: [{ vendor: 'ear', model: 'tts' }],
    },
    letters: {
      ...{ capability: 'speech', prices: { character: 0.00001 }, speech: { formats: ['mp3'], events: false } },
      routes: [{ vendor: 'ear', model: 'tts-1' }],
    },
  },
});

const event = (fields: object): string => `data: ${JSON.stringify(fields)}\n\n`;

describe('what audio costs', () => {
  let records: JobRecords;
  let vendor: FixtureVendor;
  before(async () => {
    vendor = await startFixtureVendor();
    records = await startRecords();
  });
  after(async () => {
    await records?.stop();
    await vendor?.close();
  });

  const startRecords = (settings: Record<string, string> = {}): Promise<JobRecords> =>
    JobRecords.start({ settings, configuration: configuration(vendor.baseUrl) });

  async function account() {
    const { id, key } = await makeLimitedAccount(records.gateway, { credit });
    const money = async () => (await readAccountMoney(records.redis, id)) ?? assert.fail();
    return { headers: { authorization: `Bearer ${key}` }, money };
  }

  /** What an account was charged, once nothing of it is held. */
  async function settled(money: Awaited<ReturnType<typeof account>>['money'], id: string): Promise<number> {
    const { cost } = await records.ended(id);
    return await eventually(async () => {
      const { held, charged } = await money();
      assert.deepEqual([held, charged], [0, cost], 'it is not settled');
      return charged as number;
    });
  }

  function transcribe(
    model: string,
    headers: Record<string, string>,
    fields: Record<string, string> = {},
    signal?: AbortSignal,
  ): Promise<Response> {
    const form = new FormData();
    for (const [name, value] of Object.entries({ model, ...fields })) form.set(name, value);
    form.set('file', minute, 'minute.wav');
    const url = `${records.gateway.url}/v1/audio/transcriptions`;
    return fetch(url, { method: 'POST', body: form, headers, ...(signal && { signal }) });
  }

  it('a transcript costs the length of its audio if its vendor tells that in timed formats alone', async () => {
    const verbose = { task: 'transcribe', language: 'English', duration: 60, text: said, segments: [], x_groq: {} };
    vendor.answer((response, { body }) => {
      const isTimed = body.includes('verbose_json');
      sendJson(response, 200, JSON.stringify(isTimed ? verbose : { text: said, x_groq: {} }));
    });
    for (const format of ['json', 'text', 'verbose_json'] as const) {
      const { headers, money } = await account();
      const response = await transcribe('timed', headers, { response_format: format });
      assert.equal(response.status, 200);
      const text = await response.text();
      if (format === 'text') assert.equal(text, `${said}\n`);
      if (format === 'verbose_json') assert.deepEqual(JSON.parse(text), verbose);
      if (format === 'json') {
        assert.deepEqual(JSON.parse(text), { usage: { type: 'duration', seconds: 60 }, text: said, x_groq: {} });
      }
      assert.equal(await settled(money, jobIdOf(response)), 60 * 100_000, format);
    }
  });

  it('a transcript whose vendor tells no length in its usage costs the one that it tells beside it, in each format', async () => {
    for (const seconds of [0, null, '60']) {
      const usage = { type: 'duration', seconds };
      vendor.answer((response) => sendJson(response, 200, JSON.stringify({ text: said, duration: 60, usage })));
      for (const format of ['json', 'text', 'verbose_json'] as const) {
        const { headers, money } = await account();
        const response = await transcribe('timed', headers, { response_format: format });
        assert.equal(response.status, 200);
        await response.text();
        assert.equal(await settled(money, jobIdOf(response)), 60 * 100_000, `${seconds}, ${format}`);
      }
    }
  });

  it('a transcript that would cost more than was held costs that, by its header, its job, lists and the ledger alike', async () => {
    // The minute is held as 16: an hour of it is more, and where its length is not told, nothing is known.
    for (const usage of [{ type: 'duration', seconds: 3600 }, undefined]) {
      vendor.answer((response) => sendJson(response, 200, JSON.stringify({ text: said, usage })));
      const { headers, money } = await account();
      const most = 960 * 100_000;
      const response = await transcribe('timed', headers);
      assert.equal(response.status, 200);
      assert.equal(response.headers.get('x-sluice-cost'), '0.096');
      assert.equal(await settled(money, jobIdOf(response)), most);
      const later = await transcribe('timed', { ...headers, prefer: 'respond-async' });
      const { id } = (await later.json()) as { id: string };
      assert.equal((await records.ended(id.slice('job_'.length))).cost, most);
      const read = async (path: string) => await (await fetch(`${records.gateway.url}${path}`, { headers })).json();
      assert.equal(((await read(`/v1/jobs/${id}`)) as { cost: number }).cost, 0.096);
      const { data } = (await read('/v1/jobs')) as { data: { cost: number }[] };
      assert.deepEqual(
        data.map(({ cost }) => cost),
        [0.096, 0.096],
      );
    }
  });

  it('a transcript with speakers costs tokens by its length if its vendor tells that alone', async () => {
    const usage = { type: 'duration', seconds: 60 };
    const diarized = { task: 'transcribe', duration: 60, text: said, segments: [], usage };
    vendor.answer((response) => sendJson(response, 200, JSON.stringify(diarized)));
    const { headers, money } = await account();
    const response = await transcribe('counted', headers, { response_format: 'diarized_json' });
    assert.deepEqual(await response.json(), diarized);
    const charged = await settled(money, jobIdOf(response));
    // 600 tokens of audio at 6,000, and those of the text, at most 40.
    assert.ok(charged >= 3_600_000 && charged <= 3_600_000 + 40 * 10_000, `${charged}`);
  });

  it('samples of speakers are held by their length, as the audio is, not by the characters of their data', async () => {
    // Ten seconds of 44,100 stereo samples: as text they would be 2,352,000 tokens each, for 14 dollars.
    const sample = `data:audio/wav;base64,${Buffer.alloc(1_764_000).toString('base64')}`;
    const usage = { type: 'tokens', input_tokens: 700, output_tokens: 30, total_tokens: 730 };
    const diarized = { task: 'transcribe', duration: 60, text: said, segments: [], usage };
    vendor.answer((response) => sendJson(response, 200, JSON.stringify(diarized)));
    const { headers, money } = await account();
    const form = new FormData();
    form.set('model', 'counted');
    form.set('response_format', 'diarized_json');
    for (const name of ['Ann', 'Ben', 'Cem', 'Dee']) {
      form.append('known_speaker_names[]', name);
      form.append('known_speaker_references[]', sample);
    }
    form.set('file', minute, 'minute.wav');
    const url = `${records.gateway.url}/v1/audio/transcriptions`;
    const response = await fetch(url, { method: 'POST', body: form, headers });
    assert.equal(response.status, 200, await response.clone().text());
    assert.deepEqual(await response.json(), diarized);
    assert.equal(await settled(money, jobIdOf(response)), 700 * 6000 + 30 * 10_000);
    assert.equal(vendor.requests.at(-1)?.body.split(sample).length, 5);
  });

  /** A stream that has begun, and goes on until its client leaves. */
  const endless =
    (first: string | Buffer, type: string): Answer =>
    (response) => {
      beginStream(response, { 'content-type': type });
      response.write(first);
    };

  /** Reads the beginning of an answer and leaves, or stays until its deadline. */
  async function cut(request: (signal: AbortSignal) => Promise<Response>, leaves: boolean) {
    const left = new AbortController();
    const response = await request(left.signal);
    assert.equal(response.status, 200);
    const reader = response.body?.getReader() ?? assert.fail();
    assert.ok(((await reader.read()).value?.length ?? 0) > 0, 'nothing came');
    if (leaves) left.abort();
    else while (!(await reader.read().catch(() => ({ done: true }))).done);
    return jobIdOf(response);
  }

  /** Has a speech begun by a model, and ended by its caller. */
  async function cutSpeech(model: string, leaves: boolean) {
    const { headers, money } = await account();
    const body = JSON.stringify({ model, voice: 'alloy', input: said });
    const speak = (signal: AbortSignal) =>
      fetch(`${records.gateway.url}/v1/audio/speech`, {
        ...{ method: 'POST', body, signal },
        headers: { ...headers, 'content-type': 'application/json' },
      });
    return { id: await cut(speak, leaves), money };
  }

  for (const leaves of [true, false]) {
    const how = leaves ? 'whose client disconnects' : 'that its deadline ends';

    describe(leaves ? 'of a client that leaves' : 'up to a deadline', () => {
      const others: JobRecords[] = [];
      before(async () => {
        others.push(records);
        // Of a gateway of their own: the other requests may take longer on a slow machine.
        if (!leaves) records = await startRecords({ SLUICE_DEADLINE_SECONDS: '4' });
      });
      after(async () => {
        if (!leaves) await records.stop();
        records = others[0] as JobRecords;
      });

      it(`speech ${how} costs the tokens of its text, not its hold`, async () => {
        const audio = Buffer.alloc(3000, 1).toString('base64');
        vendor.answer(endless(event({ type: 'speech.audio.delta', audio }), 'text/event-stream'));
        const { id, money } = await cutSpeech('mouth', leaves);
        const charged = await settled(money, id);
        // Six and a half seconds, of 20.8 tokens each.
        assert.ok(charged >= 100 * 12_000 && charged <= 200 * 12_000, `${charged}`);
        const { usage } = await records.ended(id);
        assert.equal(JSON.parse(usage ?? '{}').estimated, true);
      });

      it(`speech ${how} costs its characters if they have the price`, async () => {
        vendor.answer(endless(Buffer.alloc(3000, 1), 'audio/mpeg'));
        const { id, money } = await cutSpeech('letters', leaves);
        assert.equal(await settled(money, id), said.length * 10_000);
      });

      it(`a streamed transcript ${how} costs what it has said`, async () => {
        vendor.answer(endless(event({ type: 'transcript.text.delta', delta: said }), 'text/event-stream'));
        const { headers, money } = await account();
        const id = await cut((signal) => transcribe('counted', headers, { stream: 'true' }, signal), leaves);
        const charged = await settled(money, id);
        // Six and a half seconds, of 10 tokens each, and 24 tokens of text.
        assert.ok(charged >= 50 * 6000 + 15 * 10_000 && charged <= 100 * 6000 + 40 * 10_000, `${charged}`);
      });
    });
  }
});
