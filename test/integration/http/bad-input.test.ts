import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { Redis } from 'ioredis';
import { held } from '../../support/chat-requests.ts';
import { assertErrorAnswer } from '../../support/error-answers.ts';
import { TestGateway } from '../../support/gateway.ts';
import { leftovers } from '../../support/leftovers.ts';
import { vendorCalls } from '../../support/vendor-journal.ts';

const path = '/v1/chat/completions';
const good = JSON.stringify(held('Hi'));
const bytes = (...parts: (string | number[])[]): Buffer =>
  Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : Buffer.from(part))));

/** Bodies that are refused, and the parameter that the answer names. */
const bodies: [name: string, body: string | Buffer, param: string | null][] = [
  ['an empty body', '', null],
  ['white space', ' \n', null],
  ['malformed JSON', '{"model":', null],
  ['JSON with a trailing comma', '{"model":"sandbox-chat",}', null],
  ['two objects', `${good}${good}`, null],
  ['an array', '[]', null],
  ['null', 'null', null],
  ['a string', '"hello"', null],
  ['a number', '1e999', null],
  [
    'invalid UTF-8',
    bytes('{"model":"sandbox-chat","messages":[{"role":"user","content":"', [0xc3, 0x28], '"}]}'),
    null,
  ],
  ['half a surrogate in UTF-8', bytes('{"a":"', [0xed, 0xa0, 0x80], '"}'), null],
  ['65 levels of nesting', `${'{"a":'.repeat(65)}1${'}'.repeat(65)}`, null],
  ['a million levels of nesting', '['.repeat(1_000_000), null],
  ['three million values', `{"a":[${'0,'.repeat(3_000_000)}0]}`, null],
  [
    'the key __proto__',
    '{"__proto__":{"isAdmin":true},"model":"sandbox-chat","messages":[{"role":"user","content":"x"}]}',
    null,
  ],
  ['an escaped __proto__ deep inside', '{"a":[{"b":{"\\u005f_proto__":1}}]}', null],
  ['constructor.prototype', '{"constructor":{"prototype":{"x":1}}}', null],
  ['an empty object', '{}', 'model'],
  ['missing messages', '{"model":"sandbox-chat"}', 'messages'],
  ['empty messages', '{"model":"sandbox-chat","messages":[]}', 'messages'],
  ['a model that is a number', '{"model":1,"messages":[{"role":"user","content":"x"}]}', 'model'],
  ['an empty model', '{"model":"","messages":[{"role":"user","content":"x"}]}', 'model'],
  ['messages that are a string', '{"model":"sandbox-chat","messages":"x"}', 'messages'],
  ['a message without content', '{"model":"sandbox-chat","messages":[{"role":"user"}]}', 'messages[0].content'],
  [
    'a content that is a number',
    '{"model":"sandbox-chat","messages":[{"role":"user","content":1}]}',
    'messages[0].content',
  ],
  ['an unknown role', '{"model":"sandbox-chat","messages":[{"role":"king","content":"x"}]}', 'messages[0].role'],
];

const fields: [field: object, param: string][] = [
  [{ temperature: 2.1 }, 'temperature'],
  [{ temperature: '1' }, 'temperature'],
  [{ top_p: -0.1 }, 'top_p'],
  [{ n: 0 }, 'n'],
  [{ n: 1.5 }, 'n'],
  [{ stream: 'yes' }, 'stream'],
  [{ stop: ['1', '2', '3', '4', '5'] }, 'stop'],
  [{ stream_options: { include_usage: true } }, 'stream_options'],
  [{ top_logprobs: 3 }, 'top_logprobs'],
  [{ tool_choice: 'required' }, 'tool_choice'],
  [{ tools: [{ type: 'function', function: { name: 'bad name' } }] }, 'tools[0].function.name'],
  [{ response_format: { type: 'xml' } }, 'response_format.type'],
  [{ max_tokens: 0 }, 'max_tokens'],
  [{ metadata: { a: 1 } }, 'metadata.a'],
];

const headers: [name: string, value: string][] = [
  ['Idempotency-Key', ' '],
  ['Idempotency-Key', 'x'.repeat(256)],
  ['Idempotency-Key', 'schlüssel'],
  ['X-Sluice-On-Disconnect', 'stay'],
  ['X-Sluice-On-Disconnect', ' '],
];

describe('bad input', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await TestGateway.start();
  });
  after(() => gateway.stop());

  function post(body: string | Buffer, more: Record<string, string> = {}): Promise<Response> {
    return gateway.fetch(path, { method: 'POST', body, headers: { 'content-type': 'application/json', ...more } });
  }

  it('POST /v1/chat/completions returns 400 naming the parameter, never its value, for a body that is not a chat', async (t) => {
    for (const [name, body, param] of bodies) {
      await t.test(`POST /v1/chat/completions refuses ${name}`, async () => {
        const error = await assertErrorAnswer(await post(body), 400, 'invalid_request_error');
        assert.equal(error.param, param);
        assert.ok(error.message.length < 400, 'the message repeats nothing of the body');
      });
    }
  });

  it('POST /v1/chat/completions returns 400 naming a field of the wrong type or range', async (t) => {
    for (const [field, param] of fields) {
      await t.test(`POST /v1/chat/completions refuses ${JSON.stringify(field)}`, async () => {
        const response = await post(JSON.stringify(held('Hi', field)));
        assert.equal((await assertErrorAnswer(response, 400, 'invalid_request_error')).param, param);
      });
    }
  });

  it('POST /v1/chat/completions returns 400 naming an invalid header', async (t) => {
    for (const [name, value] of headers) {
      await t.test(`POST /v1/chat/completions refuses the header ${name}: '${value.slice(0, 20)}'`, async () => {
        const [status, body] = await raw([`${name}: ${value}`], good);
        assert.equal(status, 400, body);
        assert.equal(JSON.parse(body).error.param, name);
      });
    }
  });

  it('POST /v1/chat/completions ignores an unknown Prefer, as RFC 7240 requires', async () => {
    const response = await post(good, { prefer: 'handling=lenient, wait=x' });
    assert.equal(response.status, 200);
  });

  it('POST /v1/chat/completions returns 404 for an unknown model', async () => {
    for (const model of ['gpt-x', '__proto__', 'constructor', 'a/b/c', 'x'.repeat(256)]) {
      await assertErrorAnswer(await post(JSON.stringify(held('Hi', { model }))), 404, 'model_not_found');
    }
  });

  it('POST /v1/chat/completions returns 413 for a body of 30 MB, with and without Content-Length', async () => {
    const body = Buffer.alloc(30_000_000, ' ');
    await assertErrorAnswer(await post(body), 413, 'request_too_large');
    const stream = new ReadableStream<Uint8Array>({
      start(controller) {
        for (let sent = 0; sent < 30; sent++) controller.enqueue(body.subarray(0, 1_000_000));
        controller.close();
      },
    });
    const init = { method: 'POST', body: stream, duplex: 'half', headers: { 'content-type': 'application/json' } };
    await assertErrorAnswer(await gateway.fetch(path, init as RequestInit), 413, 'request_too_large');
  });

  it('POST /v1/chat/completions returns 415 for a content encoding other than gzip and zstd', async () => {
    await assertErrorAnswer(await post(good, { 'content-encoding': 'br' }), 415, 'unsupported_media_type');
  });

  it('POST /v1/chat/completions returns 401 for a malformed or missing Authorization, before it parses the body', async () => {
    for (const line of [
      'X-Nothing: 1',
      'Authorization: ',
      'Authorization: Bearer',
      'Authorization: sk-sluice-x',
      'x-api-key: x',
    ]) {
      const [status, body] = await raw([line], '{', false);
      assert.equal(status, 401, line);
      assert.equal(JSON.parse(body).error.code, 'invalid_api_key');
    }
  });

  it('the server refuses a malformed HTTP request with 400 and continues to serve', async () => {
    const [status] = await talk('GET /v1/models HTTP/1.1\r\nbad header\r\n\r\n');
    assert.equal(status, 400);
    assert.equal((await gateway.fetch('/v1/models')).status, 200);
  });

  it('invalid requests are not queued, held or sent to the vendor', async () => {
    const calls = await vendorCalls(gateway);
    assert.equal(calls.length, 1, 'only the request that was right');
    assert.deepEqual(await leftovers(gateway.redisUrl), []);
    const redis = new Redis(gateway.redisUrl);
    const states = (await redis.keys('sluice:{a*}:job:*')).length;
    redis.disconnect();
    assert.equal(states, 1, 'no state but the one of the request that was right');
  });

  /** A request by hand, because `fetch` refuses to send some of these headers. */
  function raw(lines: string[], body: string, withKey = true): Promise<[status: number, body: string]> {
    const key = withKey ? [`Authorization: Bearer ${gateway.apiKey}`] : [];
    const head = [
      `POST ${path} HTTP/1.1`,
      'Host: localhost',
      'Connection: close',
      'Content-Type: application/json',
      ...key,
      ...lines,
    ];
    return talk(`${head.join('\r\n')}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
  }

  async function talk(request: string): Promise<[status: number, body: string]> {
    const socket = connect({ host: '127.0.0.1', port: Number(new URL(gateway.url).port) });
    let answer = '';
    socket.setEncoding('utf8').on('data', (text: string) => {
      answer += text;
    });
    socket.write(request);
    await once(socket, 'close');
    const status = Number(/^HTTP\/1\.1 (\d+)/.exec(answer)?.[1]);
    return [status, answer.slice(answer.indexOf('\r\n\r\n') + 4)];
  }
});
