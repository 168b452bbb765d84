import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { gunzipSync } from 'node:zlib';
import { eventually } from '../../support/eventually.ts';
import { JobRecords } from '../../support/job-records.ts';
import { makeApiKey } from '../../support/make-api-key.ts';
import { type FixtureVendor, startFixtureVendor } from '../../vendors/contracts/fixture-vendor.ts';

const mebibyte = 1024 * 1024;
/** More than the system keeps for a client that does not read. */
const image = Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), randomBytes(18 * mebibyte)]).toString(
  'base64',
);
const answer = Buffer.from(JSON.stringify({ created: 1, data: [{ b64_json: image }] }));
const hashOf = (bytes: string | Buffer): string => createHash('sha256').update(bytes).digest('hex');

/** A client that reads as it is told: no other stops in the middle. */
class SlowClient {
  readonly #parts: Buffer[] = [];
  readonly #socket;
  readonly #closed: Promise<unknown>;

  constructor(url: string, key: string, path: string, body: object, headers = '') {
    const { hostname, port } = new URL(url);
    const text = JSON.stringify(body);
    this.#socket = connect(Number(port), hostname).on('error', () => undefined);
    this.#closed = once(this.#socket, 'close');
    this.#socket.write(
      `POST ${path} HTTP/1.1\r\nhost: ${hostname}\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\n` +
        `connection: close\r\n${headers}content-length: ${text.length}\r\n\r\n${text}`,
    );
  }

  get received(): Buffer {
    return Buffer.concat(this.#parts);
  }

  /** Reads to the end, or to so many bytes, with a rest after each of them. */
  async read(bytes = Number.POSITIVE_INFINITY, restMs = 0): Promise<void> {
    for (let read = 0; read < bytes; ) {
      const part = this.#socket.read() as Buffer | null;
      if (part !== null) {
        this.#parts.push(part);
        read += part.length;
        if (restMs > 0) await delay(restMs);
      } else if (this.#socket.readableEnded || this.#socket.destroyed) return;
      else await Promise.race([once(this.#socket, 'readable').catch(() => undefined), this.#closed]);
    }
  }

  /** What has come. */
  answer(): { readonly head: string; readonly body: Buffer } {
    const all = this.received;
    const end = all.indexOf('\r\n\r\n');
    return { head: all.toString('latin1', 0, Math.max(0, end)), body: all.subarray(end + 4) };
  }

  leave(): void {
    this.#socket.destroy();
  }
}

/** A body without the marks of its chunks. */
function unchunked(body: Buffer): Buffer {
  const parts: Buffer[] = [];
  for (let at = 0; at < body.length; ) {
    const end = body.indexOf('\r\n', at);
    const length = Number.parseInt(body.toString('latin1', at, end), 16);
    parts.push(body.subarray(end + 2, end + 2 + length));
    at = end + 2 + length + 2;
  }
  return Buffer.concat(parts);
}

describe('large held answers of clients that read slowly', () => {
  let records: JobRecords;
  let vendor: FixtureVendor;
  /** Answers that wait to be sent together. */
  let asked: ServerResponse[] = [];
  before(async () => {
    vendor = await startFixtureVendor();
    const { baseUrl } = vendor;
    records = await JobRecords.start({
      settings: {
        ...{ OPENAI_API_KEY: 'sk-inside', OPENAI_BASE_URL: baseUrl },
        ...{ SLUICE_UNSENT_MIB: '32', SLUICE_UNREAD_SECONDS: '5' },
      },
    });
    vendor.answer((response) => {
      asked.push(response);
    });
  });
  after(async () => {
    await records?.stop();
    await vendor?.close();
  });

  const send = (body: Buffer): void => {
    for (const response of asked) response.writeHead(200, { 'content-type': 'application/json' }).end(body);
    asked = [];
  };
  const images = '/v1/images/generations';
  const draw = (key: string, prompt: string): SlowClient =>
    new SlowClient(records.gateway.url, key, images, { model: 'gpt-image-2', prompt });
  const cuts = (reason: string): Promise<number> =>
    records.metric(`sluice_connections_cut_total\\{[^}]*reason="${reason}"`);

  it('arrive whole, however many come at once, and one that its client does not read is given up for the next', {
    timeout: 120_000,
  }, async () => {
    const keys = await Promise.all(['one', 'another'].map((accountId) => makeApiKey(records.gateway, { accountId })));
    const unread = draw(keys[0] as string, 'never read');
    const clients = Array.from({ length: 8 }, (_, index) => draw(keys[index % 2] as string, `slow ${index}`));
    await eventually(() => assert.equal(asked.length, 9));
    send(answer);
    await Promise.all(clients.map((client) => client.read(undefined, 5)));
    for (const client of clients) {
      const { head, body } = client.answer();
      assert.match(head, /^HTTP\/1.1 200 /);
      assert.match(head, /^x-sluice-vendor: openai$/im);
      assert.match(head, new RegExp(`^content-length: ${answer.length}$`, 'im'));
      assert.equal(hashOf(body), hashOf(answer));
    }
    assert.equal(await cuts('unsent'), 0);
    await eventually(async () => assert.equal(await cuts('unread'), 1), 30_000);
    const next = draw(keys[0] as string, 'the next');
    await eventually(() => assert.equal(asked.length, 1));
    send(answer);
    await next.read();
    assert.equal(hashOf(next.answer().body), hashOf(answer));
    await unread.read();
    assert.ok(unread.answer().body.length < answer.length);
  });

  it('that are chats arrive whole with the envelope before them, however many come at once', {
    timeout: 120_000,
  }, async () => {
    const key = await makeApiKey(records.gateway, { accountId: 'of chats' });
    const said = 'x"é'.repeat(3 * mebibyte);
    const choices = [{ index: 0, message: { role: 'assistant', content: said }, finish_reason: 'stop' }];
    const ask = (content: string): SlowClient => {
      const body = { model: 'gpt-4o', messages: [{ role: 'user', content }] };
      return new SlowClient(records.gateway.url, key, '/v1/chat/completions', body);
    };
    const before = await cuts('unsent');
    const clients = Array.from({ length: 6 }, (_, index) => ask(`slow ${index}`));
    await eventually(() => assert.equal(asked.length, clients.length));
    send(Buffer.from(JSON.stringify({ choices, usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 } })));
    await Promise.all(clients.map((client) => client.read(undefined, 2)));
    for (const client of clients) {
      const { head, body } = client.answer();
      assert.match(head, /^content-type: application\/json; charset=utf-8$/im);
      assert.match(head, new RegExp(`^content-length: ${body.length}$`, 'im'));
      const { id, object, model, choices } = JSON.parse(String(body));
      assert.match(id, /^chatcmpl-[0-9a-f]{32}$/);
      assert.deepEqual([object, model], ['chat.completion', 'gpt-4o']);
      assert.equal(hashOf(choices[0].message.content), hashOf(said));
    }
    assert.equal(await cuts('unsent'), before);
  });

  it('end with their connection when their file is gone, and begin no other answer', { timeout: 60_000 }, async () => {
    const client = draw(records.gateway.apiKey, 'of which the rest is lost');
    await eventually(() => assert.equal(asked.length, 1));
    send(answer);
    await client.read(1);
    const { dataDir } = records.gateway;
    await rm(join(dataDir, 'blobs'), { recursive: true });
    await client.read();
    const { head, body } = client.answer();
    assert.match(head, /^HTTP\/1.1 200 /);
    assert.ok(body.length < answer.length);
    assert.ok(body.equals(answer.subarray(0, body.length)));
    const [api] = records.gateway.apis;
    await eventually(() => assert.match(String(api?.output()), /reading the rest of an answer failed/));
  });

  it('are the same compressed and not, and with an envelope before them', { timeout: 60_000 }, async () => {
    const embedding = Array.from({ length: 200_000 }, (_, index) => index / 7);
    const made = {
      object: 'list',
      data: [{ object: 'embedding', index: 0, embedding }],
      usage: { prompt_tokens: 1, total_tokens: 1 },
    };
    const ask = async (headers = ''): Promise<ReturnType<SlowClient['answer']>> => {
      const body = { model: 'text-embedding-3-small', input: 'Hello', encoding_format: 'float' };
      const client = new SlowClient(records.gateway.url, records.gateway.apiKey, '/v1/embeddings', body, headers);
      await eventually(() => assert.equal(asked.length, 1));
      send(Buffer.from(JSON.stringify(made)));
      await client.read();
      return client.answer();
    };
    const plain = await ask();
    assert.match(plain.head, new RegExp(`^content-length: ${plain.body.length}$`, 'im'));
    assert.deepEqual(JSON.parse(String(plain.body)), { ...made, model: 'text-embedding-3-small' });
    const packed = await ask('accept-encoding: gzip\r\n');
    assert.match(packed.head, /^content-encoding: gzip$/im);
    assert.match(packed.head, /^vary: accept-encoding$/im);
    assert.ok(gunzipSync(unchunked(packed.body)).equals(plain.body));
  });
});
