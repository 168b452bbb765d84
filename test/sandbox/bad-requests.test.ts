import assert from 'node:assert/strict';
import { request as httpRequest } from 'node:http';
import { after, before, describe, it } from 'node:test';
import { type RunningSandbox, startSandbox } from '../../sandbox/server.ts';

let sandbox: RunningSandbox;
before(async () => {
  sandbox = await startSandbox();
});
after(() => sandbox.close());

const user = { role: 'user', content: 'hi' };
const good = { model: 'sandbox-chat', messages: [user] };

async function post(body: unknown, headers: Record<string, string> = {}) {
  const response = await fetch(`${sandbox.url}/v1/chat/completions`, {
    method: 'POST',
    headers,
    body: typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body),
  });
  return { status: response.status, body: (await response.json()) as { error: Record<string, unknown> } };
}

describe('sandbox POST /v1/chat/completions with bad input', () => {
  it('sandbox POST /v1/chat/completions returns 400 naming the parameter at fault', async () => {
    const tools = [{ type: 'function', function: { name: 'f' } }];
    const cases: [string | null, unknown][] = [
      [null, '{'],
      [null, ''],
      [null, '[]'],
      [null, 'null'],
      [null, Buffer.from([0x7b, 0xff, 0x7d])],
      ['model', { messages: [user] }],
      ['model', { ...good, model: 5 }],
      ['messages', { model: 'sandbox-chat' }],
      ['messages', { ...good, messages: [] }],
      ['messages', { ...good, messages: 'hi' }],
      ['messages[0]', { ...good, messages: ['hi'] }],
      ['messages[1].role', { ...good, messages: [user, { role: 'robot', content: '' }] }],
      ['messages[0].content', { ...good, messages: [{ role: 'user', content: null }] }],
      ['messages[0].content[0]', { ...good, messages: [{ role: 'user', content: ['hi'] }] }],
      ['messages[0].content[0].type', { ...good, messages: [{ role: 'user', content: [{ type: 'smell' }] }] }],
      ['messages[0].content[0].text', { ...good, messages: [{ role: 'user', content: [{ type: 'text' }] }] }],
      ['messages[0].content[0].image_url', { ...good, messages: [{ role: 'user', content: [{ type: 'image_url' }] }] }],
      ['messages[0].tool_call_id', { ...good, messages: [{ role: 'tool', content: 'x' }] }],
      ['temperature', { ...good, temperature: 2.1 }],
      ['top_p', { ...good, top_p: '1' }],
      ['n', { ...good, n: 0 }],
      ['n', { ...good, n: 1.5 }],
      ['max_tokens', { ...good, max_tokens: 0 }],
      ['stop', { ...good, stop: ['1', '2', '3', '4', '5'] }],
      ['stop', { ...good, stop: [1] }],
      ['stream', { ...good, stream: 'yes' }],
      ['stream_options', { ...good, stream_options: { include_usage: true } }],
      ['seed', { ...good, seed: 0.5 }],
      ['top_logprobs', { ...good, logprobs: true, top_logprobs: 21 }],
      ['top_logprobs', { ...good, top_logprobs: 2 }],
      ['presence_penalty', { ...good, presence_penalty: -3 }],
      ['logit_bias', { ...good, logit_bias: [] }],
      ['metadata', { ...good, metadata: 'x' }],
      ['tools', { ...good, tools: {} }],
      ['tools[0].type', { ...good, tools: [{ type: 'gadget' }] }],
      ['tools[0].function.name', { ...good, tools: [{ type: 'function', function: {} }] }],
      [
        'tools[0].function.parameters',
        { ...good, tools: [{ type: 'function', function: { name: 'f', parameters: 1 } }] },
      ],
      ['tool_choice', { ...good, tool_choice: 'required' }],
      ['tool_choice', { ...good, tools, tool_choice: 'sometimes' }],
      ['tool_choice', { ...good, tools, tool_choice: { type: 'function', function: { name: 'g' } } }],
      ['parallel_tool_calls', { ...good, tools, parallel_tool_calls: 1 }],
      ['response_format', { ...good, response_format: 'json' }],
      ['response_format.type', { ...good, response_format: { type: 'xml' } }],
      ['response_format.json_schema', { ...good, response_format: { type: 'json_schema' } }],
      ['sandbox', { ...good, sandbox: 1 }],
      ['sandbox.first_token_ms', { ...good, sandbox: { first_token_ms: -1 } }],
      ['sandbox.fault.kind', { ...good, sandbox: { fault: { kind: 'earthquake' } } }],
      ['sandbox.fault.key', { ...good, sandbox: { fault: { kind: 'reset', times: 1 } } }],
      ['sandbox.fault.status', { ...good, sandbox: { fault: { kind: 'error', status: 200 } } }],
    ];
    for (const [param, body] of cases) {
      const answer = await post(body);
      assert.equal(answer.status, 400, JSON.stringify(body));
      const { message, type, ...rest } = answer.body.error;
      assert.deepEqual([type, rest], ['invalid_request_error', { param, code: null }], JSON.stringify(body));
      assert.equal(typeof message, 'string');
    }
    assert.equal((await post(good, { 'x-sandbox': '{' })).body.error.param, 'x-sandbox');
  });

  it('sandbox POST /v1/chat/completions returns 400 for nesting that is too deep', async () => {
    const deep = '['.repeat(200_000) + ']'.repeat(200_000);
    const tools = `[{"type":"function","function":{"name":"hi","parameters":{"enum":${deep}}}}]`;
    const { status } = await post(
      `{"model":"sandbox-chat","messages":[{"role":"user","content":"hi"}],"tools":${tools}}`,
    );
    assert.equal(status, 400);
  });

  it('sandbox POST /v1/chat/completions treats null as a missing parameter, and accepts any key or none', async () => {
    const nulls = [
      'temperature',
      'n',
      'stop',
      'tools',
      'tool_choice',
      'response_format',
      'stream_options',
      'seed',
      'sandbox',
    ];
    const body = { ...good, ...Object.fromEntries(nulls.map((name) => [name, null])) };
    assert.equal((await post(body)).status, 200);
    assert.equal((await post(body, { authorization: 'Bearer whatever' })).status, 200);
  });

  it('sandbox POST /v1/chat/completions returns 413 over 64 MiB, announced or not', async () => {
    for (const announced of [true, false]) {
      const status = await new Promise<number | undefined>((resolve, reject) => {
        const headers = announced ? { 'content-length': 65 * 1024 * 1024 } : {};
        const upload = httpRequest(`${sandbox.url}/v1/chat/completions`, { method: 'POST', headers }, (response) => {
          response.resume();
          resolve(response.statusCode);
          upload.destroy();
        });
        upload.on('error', reject);
        const part = Buffer.alloc(1024 * 1024, ' ');
        let left = 65;
        const send = () => {
          while (left > 0 && !upload.destroyed) {
            left -= 1;
            if (!upload.write(part)) return upload.once('drain', send);
          }
          return upload;
        };
        send();
      });
      assert.equal(status, 413);
    }
  });
});

describe('other sandbox requests', () => {
  it('the sandbox returns 404 for unknown paths and 405 for other methods', async () => {
    for (const path of ['/', '/v1', '/v1/files', '/v1/chat', '/__proto__', '/v1/chat/completions/x']) {
      const response = await fetch(sandbox.url + path);
      assert.equal(response.status, 404, path);
      assert.equal(((await response.json()) as { error: { code: string } }).error.code, 'unknown_url');
    }
    for (const [method, path] of [
      ['GET', '/v1/chat/completions'],
      ['POST', '/v1/models'],
      ['DELETE', '/models/sandbox-chat'],
    ] as const) {
      const response = await fetch(sandbox.url + path, { method });
      assert.equal(response.status, 405);
      assert.ok(response.headers.get('allow'));
    }
  });
});

describe('schemas that take too long', () => {
  const text = 'a'.repeat(60);
  const pattern = '^(a|aa|aaa)+$(?<!x)b';
  const format = (schema: object) => ({
    ...good,
    response_format: { type: 'json_schema', json_schema: { name: 'slow', schema } },
  });
  const tool = (fields: object) => ({ ...good, tools: [fields], tool_choice: 'required' });
  // Code points that no sample has: each is looked for among all of them.
  const rare = Array.from({ length: 3000 }, () => '[\\u{1F4A9}]').join('');
  const slow: [name: string, body: object][] = [
    ['by a pattern on an enum', format({ type: 'string', enum: [text], pattern })],
    ['by a pattern of property names', format({ const: { [text]: 1 }, patternProperties: { [pattern]: true } })],
    [
      'by the schema of a tool',
      tool({ type: 'function', function: { name: 'f', parameters: { properties: { a: { enum: [text], pattern } } } } }),
    ],
    ['by a pattern of rare characters', format({ type: 'string', pattern: rare })],
    [
      'by the grammar of a tool',
      tool({
        type: 'custom',
        custom: { name: 'f', format: { type: 'grammar', grammar: { syntax: 'regex', definition: rare } } },
      }),
    ],
  ];
  for (const [name, body] of slow) {
    it(`a sandbox request kept busy ${name} returns 400, and other requests are answered meanwhile`, {
      timeout: 60_000,
    }, async () => {
      const refused = await post(body);
      assert.equal(refused.status, 400, JSON.stringify(refused.body));
      assert.match(String(refused.body.error.message), /take too long/);
      assert.equal((await post(good)).status, 200);
    });
  }
});
