import assert from 'node:assert/strict';
import { request } from 'node:http';
import { after, before, describe, it } from 'node:test';
import zlib, { gunzipSync } from 'node:zlib';
import OpenAI from 'openai';
import { held, streamed } from '../../support/chat-requests.ts';
import { signUp } from '../../support/console-session.ts';
import { TestGateway } from '../../support/gateway.ts';
import { sseEvents, textOf } from '../../support/sse-events.ts';

interface RawAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** As it came, before any decoding. */
  readonly body: Buffer;
}

const { zstdDecompressSync } = zlib as unknown as { readonly zstdDecompressSync?: (body: Buffer) => Buffer };

/** Some 110,000 characters of answer. */
const long = 'WORDS:12000@0';

describe('compressed JSON answers', () => {
  let gateway: TestGateway;
  before(async () => {
    // Free of charge: the console's user has no credit.
    gateway = await TestGateway.start({ settings: { SLUICE_SANDBOX: 'on', SLUICE_SIGN_UP: 'open' } });
  });
  after(() => gateway.stop());

  /** Without a client that adds headers or decodes anything. */
  function ask(path: string, options: { body?: object; encoding?: string; cookie?: string } = {}): Promise<RawAnswer> {
    const { body, encoding, cookie } = options;
    const headers = {
      ...(cookie === undefined ? { authorization: `Bearer ${gateway.apiKey}` } : { cookie, origin: gateway.url }),
      ...(encoding === undefined ? {} : { 'accept-encoding': encoding }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    };
    return new Promise((resolve, reject) => {
      const call = request(
        `${gateway.url}${path}`,
        { method: body === undefined ? 'GET' : 'POST', headers },
        (answer) => {
          const parts: Buffer[] = [];
          answer.on('data', (part: Buffer) => parts.push(part));
          answer.on('error', reject);
          answer.on('end', () =>
            resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body: Buffer.concat(parts) }),
          );
        },
      );
      call.on('error', reject);
      call.end(body === undefined ? undefined : JSON.stringify(body));
    });
  }

  const chat = '/v1/chat/completions';

  it('a large chat answer is sent as gzip with Vary and a matching Content-Length', async () => {
    const answer = await ask(chat, { body: held(long), encoding: 'gzip, deflate, br' });
    assert.equal(answer.status, 200);
    assert.equal(answer.headers['content-encoding'], 'gzip');
    assert.equal(answer.headers['content-type'], 'application/json; charset=utf-8');
    assert.match(String(answer.headers.vary), /accept-encoding/i);
    assert.equal(Number(answer.headers['content-length']), answer.body.length);
    const plain = gunzipSync(answer.body);
    assert.ok(answer.body.length < plain.length / 2, `${answer.body.length} of ${plain.length} bytes`);
    assert.ok(JSON.parse(plain.toString()).choices[0].message.content.length > 65_536);
  });

  it('a large chat answer is sent as zstd to a client that prefers it, if Node supports it', async () => {
    const { headers, body } = await ask(chat, { body: held(long), encoding: 'zstd, gzip;q=0.5' });
    const decode = { zstd: zstdDecompressSync, gzip: gunzipSync }[String(headers['content-encoding'])];
    assert.equal(headers['content-encoding'], zstdDecompressSync === undefined ? 'gzip' : 'zstd');
    assert.equal(JSON.parse(String(decode?.(body))).object, 'chat.completion');
  });

  it('an answer is not compressed without a fitting Accept-Encoding, or when it is small', async () => {
    for (const encoding of [undefined, 'identity', 'br', 'gzip;q=0, zstd;q=0', 'nonsense;;;']) {
      const { headers, body } = await ask(chat, { body: held(long), ...(encoding && { encoding }) });
      assert.equal(headers['content-encoding'], undefined, encoding);
      assert.match(String(headers.vary), /accept-encoding/i);
      assert.equal(JSON.parse(body.toString()).object, 'chat.completion');
    }
    const small = await ask(chat, { body: held('Hi'), encoding: 'gzip' });
    assert.equal(small.headers['content-encoding'], undefined);
    assert.equal(small.headers.vary, undefined);
    const refused = await ask(chat, { body: { model: 'x'.repeat(5000) }, encoding: 'gzip' });
    assert.equal(refused.status, 400);
    assert.equal(refused.headers['content-encoding'], undefined);
  });

  it('a streamed answer is never compressed', async () => {
    const { headers, body } = await ask(chat, { body: streamed(long), encoding: 'gzip' });
    assert.equal(headers['content-encoding'], undefined);
    assert.ok(textOf(sseEvents(body.toString())).length > 65_536);
  });

  it('an image answer in base64 is never compressed', async () => {
    const body = { model: 'sandbox-image', prompt: 'An otter', size: '1536x1024', n: 10, response_format: 'b64_json' };
    const { headers, body: answer } = await ask('/v1/images/generations', { body, encoding: 'gzip' });
    assert.ok(answer.length > 65_536, `${answer.length} bytes`);
    assert.equal(headers['content-encoding'], undefined);
  });

  it('large embeddings and stored responses are compressed', async () => {
    const made = await ask('/v1/responses', { body: { model: 'sandbox-chat', input: long }, encoding: 'gzip' });
    const { id } = JSON.parse(gunzipSync(made.body).toString());
    const read = await ask(`/v1/responses/${id}`, { encoding: 'gzip' });
    assert.equal(read.headers['content-encoding'], 'gzip');
    assert.match(String(read.headers['content-type']), /^application\/json/);
    assert.equal(JSON.parse(gunzipSync(read.body).toString()).id, id);
    const vectors = { model: 'sandbox-embedding', input: Array.from({ length: 300 }, (_, at) => `text ${at}`) };
    const embedded = await ask('/v1/embeddings', { body: vectors, encoding: 'gzip' });
    assert.equal(embedded.headers['content-encoding'], 'gzip');
    assert.equal(JSON.parse(gunzipSync(embedded.body).toString()).data.length, 300);
  });

  it('compressed answers arrive complete at the OpenAI client, also for twenty concurrent requests', async () => {
    const encodings: (string | null)[] = [];
    const client = new OpenAI({
      ...{ baseURL: `${gateway.url}/v1`, apiKey: gateway.apiKey, maxRetries: 0 },
      fetch: async (url, init) => {
        const response = await fetch(url as string, init as RequestInit);
        encodings.push(response.headers.get('content-encoding'));
        return response;
      },
    });
    const { choices } = await client.chat.completions.create(held(long));
    assert.ok(encodings[0] !== null, 'the client was sent what it asks for by itself');
    const text = choices[0]?.message.content ?? '';
    const texts = await Promise.all(
      Array.from(
        { length: 20 },
        async () => (await client.chat.completions.create(held(long))).choices[0]?.message.content,
      ),
    );
    for (const other of texts) assert.equal(other?.length, text.length);
  });

  it('an answer to a request with a session cookie is never compressed', async () => {
    const { cookie } = await signUp(gateway, 'ada@example.com');
    const { status, headers, body } = await ask('/console/api/models', { cookie, encoding: 'gzip' });
    assert.equal(status, 200);
    assert.ok(body.length > 65_536);
    assert.equal(headers['content-encoding'], undefined);
    const played = await ask('/console/api/v1/chat/completions', { body: held(long), cookie, encoding: 'gzip' });
    assert.equal(played.status, 200, played.body.toString());
    assert.ok(played.body.length > 65_536);
    assert.equal(played.headers['content-encoding'], undefined);
  });
});
