import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import type { JobObject } from '../../api/pipeline/job-object.ts';
import { startSandbox } from '../../sandbox/server.ts';
import { streamed } from '../support/chat-requests.ts';
import { isMainNode } from '../support/faults/load.ts';
import { TestGateway } from '../support/gateway.ts';
import { openJobSocket } from '../support/job-socket-client.ts';
import { leftovers, withLostReadersMs } from '../support/leftovers.ts';
import { cuts, type RecuttingVendor, startRecuttingVendor } from '../support/recutting-vendor.ts';
import { ResponseSocketClient } from '../support/response-socket-client.ts';
import { sseEvents } from '../support/sse-events.ts';
import { wav } from '../support/wav.ts';

/** Streams of each kind, for each way in which the vendor cuts its answers. */
const count = process.env.SLUICE_SOAK ? 10_000 : isMainNode ? 16 : 8;
const concurrency = 8;

const wordCount = 20;
const prompt = `WORDS:${wordCount}`;

/** One way to get a streamed answer: gets it, and throws where it is not whole. */
type Kind = (gateway: TestGateway) => Promise<void>;

/** Every word is there, and what ends such a stream ends it. */
function assertWhole(text: string, end: RegExp): void {
  const words = new Set(text.match(/word\d+/g));
  assert.equal(words.size, wordCount, `${words.size} of ${wordCount} words in ${text.length} characters`);
  assert.match(text.slice(-4000), end);
}

async function post(gateway: TestGateway, path: string, body: object | FormData, headers = {}): Promise<Response> {
  const init = { method: 'POST', body: body instanceof FormData ? body : JSON.stringify(body), headers };
  const response = body instanceof FormData ? await sendForm(gateway, path, body) : await gateway.fetch(path, init);
  assert.equal(response.status, 200, response.ok ? '' : await response.text());
  return response;
}

/** `fetch` makes up a form's content type itself. */
function sendForm(gateway: TestGateway, path: string, body: FormData): Promise<Response> {
  const headers = { authorization: `Bearer ${gateway.apiKey}` };
  return fetch(`${gateway.url}${path}`, { method: 'POST', body, headers });
}

/** A kind of which the answer is text. */
function textKind(path: string, body: object, end: RegExp): Kind {
  return async (gateway) => assertWhole(await (await post(gateway, path, body)).text(), end);
}

const doneEnd = /data: \[DONE\]\n\n$/;
const events = streamed(prompt);

/** A job that has ended, and whose events can be read again. */
async function endedStream(gateway: TestGateway): Promise<string> {
  const accepted = await gateway.fetch('/v1/chat/completions', {
    method: 'POST',
    body: JSON.stringify(events),
    headers: { prefer: 'respond-async' },
  });
  assert.equal(accepted.status, 202);
  const { id } = (await accepted.json()) as JobObject;
  await (await gateway.fetch(`/v1/jobs/${id}/events`)).text();
  return id;
}

const transcriptionForm = (): FormData => {
  const form = new FormData();
  form.append('model', 'sandbox-transcribe');
  form.append('stream', 'true');
  form.append('file', new Blob([new Uint8Array(wav(2))], { type: 'audio/wav' }), 'a.wav');
  return form;
};

/** The same request of the vendor itself: what its answer is, whole. */
async function vendorBytes(gateway: TestGateway, path: string, body: object): Promise<Buffer> {
  const headers = { 'content-type': 'application/json' };
  const answer = await fetch(`${gateway.sandbox.url}${path}`, { method: 'POST', body: JSON.stringify(body), headers });
  return Buffer.from(await answer.arrayBuffer());
}

const speech = { model: 'sandbox-speech', input: 'Hello, this is a test.', voice: 'alloy', response_format: 'wav' };
const image = { model: 'sandbox-image', prompt: 'A lighthouse', size: '1024x1024', stream: true, partial_images: 1 };

const kinds: Readonly<Record<string, Kind>> = {
  'chat completions': textKind('/v1/chat/completions', events, doneEnd),
  'legacy completions': textKind(
    '/v1/completions',
    { model: 'sandbox-instruct', prompt, stream: true, max_tokens: 100 },
    doneEnd,
  ),
  'native responses': textKind('/v1/responses', { model: 'sandbox-responses', input: prompt, stream: true }, doneEnd),
  'responses over a chat': textKind('/v1/responses', { model: 'sandbox-chat', input: prompt, stream: true }, doneEnd),
  messages: textKind(
    '/v1/messages',
    { model: 'sandbox-chat', max_tokens: 1000, messages: [{ role: 'user', content: prompt }], stream: true },
    /event: message_stop\ndata: .*\nid: \S+\n\n$/,
  ),
  speech: async (gateway) => {
    const audio = Buffer.from(await (await post(gateway, '/v1/audio/speech', speech)).arrayBuffer());
    assert.ok(
      audio.length > 10_000 && audio.equals(await vendorBytes(gateway, '/v1/audio/speech', speech)),
      'not equal',
    );
  },
  transcripts: async (gateway) => {
    const text = await (await post(gateway, '/v1/audio/transcriptions', transcriptionForm())).text();
    assert.match(text, /data: \{"type":"transcript\.text\.done".*\nid: \S+\n\n$/);
    assert.match(text, /transcript\.text\.delta/);
  },
  images: async (gateway) => {
    const text = await (await post(gateway, '/v1/images/generations', image)).text();
    assert.match(text, /image_generation\.partial_image/);
    const last = sseEvents(text).at(-1)?.data ?? '';
    assert.match(last, /image_generation\.completed/);
    JSON.parse(last);
  },
  'a keyed request sent again': async (gateway) => {
    const headers = { 'idempotency-key': randomUUID() };
    const first = await (await post(gateway, '/v1/chat/completions', events, headers)).text();
    const again = await post(gateway, '/v1/chat/completions', events, headers);
    assert.equal(again.headers.get('idempotent-replayed'), 'true');
    assert.equal(await again.text(), first);
    assertWhole(first, doneEnd);
  },
  "a job's events, from the start and from the middle": async (gateway) => {
    const id = await endedStream(gateway);
    const whole = await (await gateway.fetch(`/v1/jobs/${id}/events`)).text();
    assertWhole(whole, doneEnd);
    const ids = [...whole.matchAll(/^id: (.+)$/gm)].map(([, eventId]) => eventId as string);
    const middle = ids[Math.floor(ids.length / 2)] as string;
    const resumed = await gateway.fetch(`/v1/jobs/${id}/events`, { headers: { 'last-event-id': middle } });
    const at = whole.indexOf(`id: ${middle}\n`);
    assert.equal(await resumed.text(), whole.slice(whole.indexOf('\n\n', at) + 2));
  },
  "a job's socket": async (gateway) => {
    const id = await endedStream(gateway);
    const socket = await openJobSocket(gateway.url, `/v1/jobs/${id}/ws`, { key: gateway.apiKey });
    assert.equal(await socket.closed, 1000);
    assert.equal(socket.messages.at(-1)?.data, '[DONE]');
    assertWhole(JSON.stringify(socket.messages), /\[DONE\]/);
  },
  'a response socket': async (gateway) => {
    const socket = await ResponseSocketClient.open(gateway.url, { key: gateway.apiKey });
    socket.create({ input: prompt, store: false });
    const turn = await socket.turn();
    assert.equal(turn.last.type, 'response.completed');
    assertWhole(turn.text, /word20$/);
    socket.webSocket.close();
    await socket.closed;
  },
};

describe('complete streams', () => {
  let gateway: TestGateway;
  let vendor: RecuttingVendor;
  before(async () => {
    const sandbox = await startSandbox({ port: 0 });
    vendor = await startRecuttingVendor(sandbox.url);
    const close = vendor.close;
    vendor.close = async () => {
      await close();
      await sandbox.close();
    };
    gateway = await TestGateway.start({ settings: { SANDBOX_BASE_URL: `${vendor.url}/v1` } });
  });
  after(async () => {
    await gateway.stop();
    await vendor.close();
  });

  for (const cut of cuts) {
    for (const [name, kind] of Object.entries(kinds)) {
      it(`${count} streams of ${name} from a vendor that writes ${cut.replaceAll('_', ' ')} are all complete`, async () => {
        vendor.cut = cut;
        let begun = 0;
        const work = async (): Promise<void> => {
          while (begun++ < count) await kind(gateway);
        };
        await Promise.all(Array.from({ length: concurrency }, work));
      });
    }
  }

  it('complete streams leave nothing behind in Redis', async () => {
    assert.deepEqual(await leftovers(gateway.redisUrl, { withinMs: withLostReadersMs }), []);
  });
});
