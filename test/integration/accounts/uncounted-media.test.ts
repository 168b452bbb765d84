import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { pngFile } from '../../support/image-files.ts';
import { JobRecords, jobIdOf } from '../../support/job-records.ts';
import { makeLimitedAccount } from '../../support/limited-account.ts';
import {
  beginStream,
  type FixtureVendor,
  sendJson,
  startFixtureVendor,
} from '../../vendors/contracts/fixture-vendor.ts';

const said = 'The lock keeper opened the upper gate before the second boat came in sight of the harbour wall.';
/** As LiteLLM's proxy reports it of images that it does not count. */
const zeros = {
  ...{ input_tokens: 0, output_tokens: 0, total_tokens: 0 },
  input_tokens_details: { image_tokens: 0, text_tokens: 0 },
};
const uncounted: readonly object[] = [zeros, { input_tokens: 12, total_tokens: 12 }, { output_tokens: '900' }];
const event = (fields: object): string => `data: ${JSON.stringify(fields)}\n\n`;

describe('images, speech and transcripts that are paid by tokens, whose vendor reports a usage that counts none', () => {
  let records: JobRecords;
  let vendor: FixtureVendor;
  let png = '';
  before(async () => {
    vendor = await startFixtureVendor();
    png = Buffer.from(await pngFile('a.png', 8).arrayBuffer()).toString('base64');
    const routes = [{ vendor: 'studio', model: 'one' }];
    const image = { partial: true, response_format: false };
    records = await JobRecords.start({
      configuration: {
        routing: { attempts: 1 },
        vendors: { studio: { like: 'openai', base_url: vendor.baseUrl, api_keys: ['any'] } },
        models: {
          painter: { capability: 'image', prices: { input: 5, image_output: 40, request: 0.001 }, image, routes },
          pieces: { capability: 'image', prices: { input: 5, image: 0.04 }, image, routes },
          mouth: {
            ...{ capability: 'speech', prices: { input: 0.6, output: 12 }, routes },
            speech: { formats: ['mp3'], events: true },
          },
          ear: {
            ...{
              capability: 'transcription',
              prices: { input: 2.5, audio_input: 6, output: 10, request: 0.001 },
              routes,
            },
            transcription: { streams: true },
          },
        },
      },
    });
  });
  after(async () => {
    await records?.stop();
    await vendor?.close();
  });

  /** What a request was charged and may have cost at most, in nano-dollars, and its usage in the ledger. */
  async function charged(path: string, fields: Record<string, unknown>, file?: Blob) {
    const { key } = await makeLimitedAccount(records.gateway, { credit: 10_000_000_000 });
    const form = new FormData();
    for (const [name, value] of Object.entries(fields)) form.set(name, String(value));
    if (file !== undefined) form.set('file', file, 'sound.wav');
    const send = (headers: Record<string, string> = {}): Promise<Response> =>
      fetch(`${records.gateway.url}${path}`, {
        method: 'POST',
        body: file === undefined ? JSON.stringify(fields) : form,
        headers: {
          ...{ authorization: `Bearer ${key}`, ...headers },
          ...(file === undefined && { 'content-type': 'application/json' }),
        },
      });
    const { max_cost: most } = (await (await send({ prefer: 'quote' })).json()) as { max_cost: number };
    const response = await send();
    assert.equal(response.status, 200, await response.clone().text());
    await response.arrayBuffer();
    const { cost, usage, outcome } = await records.ended(jobIdOf(response));
    assert.equal(outcome, 'completed');
    return { cost, most: Math.round(most * 1e9), usage: JSON.parse(usage ?? 'null') };
  }

  for (const stream of [false, true]) {
    it(`images cost what was held, as those whose vendor reports none do${stream ? ', streamed' : ''}`, async () => {
      for (const usage of [...uncounted, undefined]) {
        vendor.answer((response) => {
          if (!stream) return sendJson(response, 200, JSON.stringify({ data: [{ b64_json: png }], usage }));
          beginStream(response);
          response.end(event({ type: 'image_generation.completed', b64_json: png, usage }));
        });
        const { cost, most } = await charged('/v1/images/generations', {
          model: 'painter',
          prompt: 'An otter',
          stream,
        });
        assert.equal(cost, most, JSON.stringify(usage));
      }
    });

    it(`a transcript costs what was held${stream ? ', streamed' : ''}`, async () => {
      for (const usage of [zeros, { output_tokens: 900 }, undefined]) {
        const told = usage && { type: 'tokens', ...usage };
        vendor.answer((response) => {
          if (!stream) return sendJson(response, 200, JSON.stringify({ text: said, usage: told }));
          beginStream(response);
          response.end(event({ type: 'transcript.text.done', text: said, usage: told }));
        });
        const sound = new Blob([Buffer.alloc(20_000)], { type: 'audio/wav' });
        const { cost, most } = await charged('/v1/audio/transcriptions', { model: 'ear', stream }, sound);
        assert.equal(cost, most, JSON.stringify(usage));
      }
    });
  }

  it('speech is estimated by its text', async () => {
    const costs = new Set<number | null>();
    for (const usage of [...uncounted, undefined]) {
      vendor.answer((response) => {
        beginStream(response);
        response.write(event({ type: 'speech.audio.delta', audio: Buffer.alloc(3000, 1).toString('base64') }));
        response.end(event({ type: 'speech.audio.done', usage }));
      });
      const spoken = await charged('/v1/audio/speech', { model: 'mouth', voice: 'alloy', input: said });
      assert.equal(spoken.usage.estimated, true, JSON.stringify(usage));
      costs.add(spoken.cost);
    }
    const [cost] = costs;
    assert.ok(costs.size === 1 && Number(cost) > 1_000_000, `${[...costs]}`);
  });

  it('an image with a price of its own costs that, and the tokens of its prompt as they are reported', async () => {
    const usage = { input_tokens: 12, output_tokens: 0, total_tokens: 12 };
    vendor.answer((response) => sendJson(response, 200, JSON.stringify({ data: [{ b64_json: png }], usage })));
    const { cost } = await charged('/v1/images/generations', { model: 'pieces', prompt: 'An otter' });
    assert.equal(cost, 40_000_000 + 12 * 5000);
  });
});
