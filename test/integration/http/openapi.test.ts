import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { get, type IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { authCalls } from '../../../api/management/sign-in/auth-calls.ts';
import { authPath } from '../../../api/management/sign-in/auth-path.ts';
import type { OpenApiDocument, OpenApiOperation } from '../../../api/reference/document.ts';
import { appRoutes } from '../../support/app-routes.ts';
import { type ConsoleSession, signIn } from '../../support/console-session.ts';
import { DocumentedAnswers, type KeptAnswer } from '../../support/documented-answers.ts';
import { eventually } from '../../support/eventually.ts';
import { TestGateway } from '../../support/gateway.ts';
import { pngBytes } from '../../support/image-files.ts';
import { wav } from '../../support/wav.ts';

const run = promisify(execFile);
const admin = { SLUICE_ADMIN_EMAIL: 'operator@example.com', SLUICE_ADMIN_PASSWORD: 'an operator password' };
const methods = ['get', 'post', 'patch', 'put', 'delete'];

const documented = new DocumentedAnswers();
let gateway: TestGateway;
let document: OpenApiDocument;
let operator: ConsoleSession;
let folder: string;

before(async () => {
  gateway = await TestGateway.start({ settings: admin });
  document = (await (await fetch(`${gateway.url}/openapi.json`)).json()) as OpenApiDocument;
  operator = await signIn(gateway, admin.SLUICE_ADMIN_EMAIL, admin.SLUICE_ADMIN_PASSWORD);
  folder = await mkdtemp(join(tmpdir(), 'sluice-test-reference-'));
  await writeFile(join(folder, 'harbour.png'), pngBytes(64));
  await writeFile(join(folder, 'hello.wav'), wav(1));
});
after(async () => {
  await gateway?.stop();
  if (folder !== undefined) await rm(folder, { recursive: true });
});

/** Asks without the Cache-Control of Node's fetch, which refuses what is kept. */
async function asBrowser(path: string, headers: Record<string, string>): Promise<{ status: number; length: number }> {
  const asked = get(`${gateway.url}${path}`, { headers: { 'accept-encoding': 'gzip', ...headers } });
  const [response] = (await once(asked, 'response')) as [IncomingMessage];
  let length = 0;
  for await (const chunk of response) length += (chunk as Buffer).length;
  return { status: response.statusCode ?? 0, length };
}

/** Every operation with its name, `GET /v1/jobs/{id}`. */
function operations(): [name: string, operation: OpenApiOperation][] {
  return Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]): [string, OpenApiOperation] => [
      `${method.toUpperCase()} ${path}`,
      operation,
    ]),
  );
}

/** Every object in the document, by its JSON pointer. */
function* objectsIn(value: unknown, pointer = '#'): Generator<[string, Record<string, unknown>]> {
  if (typeof value !== 'object' || value === null) return;
  if (!Array.isArray(value)) yield [pointer, value as Record<string, unknown>];
  for (const [name, inner] of Object.entries(value)) yield* objectsIn(inner, `${pointer}/${name}`);
}

/** What a pointer within the document names. */
function resolve(pointer: string): unknown {
  return pointer
    .slice(2)
    .split('/')
    .reduce<unknown>((at, name) => (at as Record<string, unknown> | undefined)?.[name], document);
}

describe('GET /openapi.json', () => {
  test('GET /openapi.json has every route of the application and no other', async () => {
    const routes = (await appRoutes()).flatMap((route) =>
      route === `ALL ${authPath}/*path`
        ? Object.entries(authCalls).map(([path, { method }]) => `${method} ${authPath}${path}`)
        : [route.replace('{/*path}', '').replace(/[:*](\w+)/g, '{$1}')],
    );
    assert.deepEqual(
      operations()
        .map(([name]) => name)
        .sort(),
      [...new Set(routes)].sort(),
    );
  });

  test('GET /openapi.json is public, stable and compressed, and returns 304 for its ETag', async () => {
    const first = await fetch(`${gateway.url}/openapi.json`);
    assert.deepEqual([first.status, first.headers.get('content-type')], [200, 'application/json; charset=utf-8']);
    assert.equal(first.headers.get('content-encoding'), 'gzip');
    const etag = first.headers.get('etag') ?? '';
    assert.match(etag, /^"[\w-]{22}-gzip"$/);
    const text = await first.text();
    assert.ok(text.length < 500_000, `${text.length} bytes`);
    assert.equal(await (await fetch(`${gateway.url}/openapi.json`)).text(), text);
    assert.deepEqual(await asBrowser('/openapi.json', { 'if-none-match': etag }), { status: 304, length: 0 });
    assert.deepEqual(document.servers, [{ url: gateway.url }]);
    for (const secret of [gateway.apiKey, admin.SLUICE_ADMIN_EMAIL, admin.SLUICE_ADMIN_PASSWORD, gateway.dataDir]) {
      assert.ok(!text.includes(secret), secret);
    }
  });

  test('GET /openapi.json is OpenAPI 3.1 with resolved references, unique operation ids and no unused components', () => {
    assert.equal(document.openapi, '3.1.0');
    assertKeys(document, ['openapi', 'info', 'servers', 'tags', 'paths', 'components'], '#');
    assertKeys(document.info, ['title', 'version', 'summary', 'license'], '#/info');
    for (const [pointer, { $ref: reference }] of objectsIn(document)) {
      if (reference !== undefined) assert.ok(resolve(String(reference)), `${pointer} names ${reference}`);
    }
    const tags = new Set(document.tags.map(({ name }) => name));
    const ids = operations().map(([, { operationId }]) => operationId);
    assert.deepEqual([...new Set(ids)], ids);
    for (const [name, operation] of operations()) assertOperation(name, operation, tags);
    const used = new Set([...objectsIn(document)].map(([, { $ref: reference }]) => reference));
    for (const [kind, components] of Object.entries(document.components)) {
      for (const name of Object.keys(components)) {
        assert.match(name, /^[\w.-]+$/);
        const isUsed = kind === 'securitySchemes' || used.has(`#/components/${kind}/${name}`);
        assert.ok(isUsed, `nothing names ${kind}/${name}`);
      }
    }
  });

  test('GET /openapi.json describes the headers by which client libraries name, bound and count their requests', () => {
    const [, chat] = operations().find(([name]) => name === 'POST /v1/chat/completions') ?? assert.fail();
    const names = (chat.parameters ?? []).map(({ $ref: reference }) => String(reference).split('/').at(-1));
    for (const name of ['X-Stainless-Timeout', 'X-Stainless-Retry-Count', 'X-Client-Request-Id']) {
      assert.ok(names.includes(name), name);
    }
  });

  test('GET /openapi.json has valid JSON Schema 2020-12 schemas', () => {
    const ajv = newAjv();
    for (const [name, schema] of Object.entries(document.components.schemas)) {
      assert.ok(ajv.validateSchema(schema), `${name}: ${ajv.errorsText()}`);
      ajv.compile({ $ref: `document#/components/schemas/${name}` });
    }
  });
});

function assertKeys(value: object, known: readonly string[], where: string): void {
  for (const key of Object.keys(value)) assert.ok(known.includes(key), `${where} has ${key}`);
}

function assertOperation(name: string, operation: OpenApiOperation, tags: ReadonlySet<string>): void {
  const [method = '', path = ''] = name.split(' ');
  assert.ok(methods.includes(method.toLowerCase()), name);
  const described = ['operationId', 'tags', 'summary', 'description', 'x-codeSamples'];
  assertKeys(operation, [...described, 'parameters', 'requestBody', 'responses', 'security'], name);
  assert.ok(operation.summary.length > 0 && operation.tags.every((tag) => tags.has(tag)), name);
  const parameters = (operation.parameters ?? []).map((given) =>
    given.$ref === undefined ? given : (resolve(String(given.$ref)) as typeof given),
  );
  for (const parameter of parameters) {
    assertKeys(parameter, ['name', 'in', 'required', 'description', 'schema', 'example'], name);
    assert.ok(['path', 'query', 'header'].includes(String(parameter.in)) && parameter.schema, name);
  }
  const inPath = parameters.filter((parameter) => parameter.in === 'path' && parameter.required === true);
  assert.deepEqual(
    inPath.map((parameter) => `{${parameter.name}}`),
    path.match(/\{\w+\}/g) ?? [],
    name,
  );
  const names = parameters.map((parameter) => `${parameter.in} ${parameter.name}`);
  assert.equal(new Set(names).size, names.length, name);
  const statuses = Object.keys(operation.responses);
  assert.ok(statuses.includes('4XX') && statuses.some((status) => /^[123]\d\d$/.test(status)), name);
  for (const answer of Object.values(operation.responses)) assert.ok('$ref' in answer || answer.description, name);
  for (const need of operation.security) {
    for (const scheme of Object.keys(need)) assert.ok(document.components.securitySchemes[scheme], name);
  }
  if (!/^(GET|DELETE)$/.test(method)) return;
  assert.equal(operation.requestBody, undefined, name);
}

function newAjv(): Ajv2020 {
  const ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: false });
  ajv.addSchema(document, 'document');
  return ajv;
}

/** Asserts that an operation, by its name, is said to answer so. */
function assertAnswer(name: string, status: number, body: unknown): void {
  const [method = '', url = ''] = name.split(' ');
  const text = JSON.stringify(body);
  const answer = { method, url, status, type: 'application/json', bytes: text.length, body: text };
  assert.equal(documented.fault(answer), undefined, text.slice(0, 2000));
}

interface Made {
  readonly JOB_ID: string;
  readonly RESPONSE_ID: string;
  readonly VIDEO_ID: string;
}

async function post(path: string, body: object): Promise<string> {
  const response = await gateway.fetch(path, { method: 'POST', body: JSON.stringify(body) });
  const { id } = (await response.json()) as { id: string };
  assert.ok(id, path);
  return id;
}

/** What the examples name: a response that can still be cancelled, and a video that is done. */
async function make(): Promise<Made> {
  const input = 'WORDS:5000';
  const slow = { sandbox: { tokens_per_second: 1 }, max_output_tokens: 5000 };
  const RESPONSE_ID = await post('/v1/responses', { model: 'sandbox-chat', input, background: true, ...slow });
  const VIDEO_ID = await post('/v1/videos', {
    ...{ model: 'sandbox-video', prompt: 'Hi', sandbox: { video: { duration_ms: 0 } } },
  });
  const messages = [{ role: 'user', content: 'Hi' }];
  const job = await gateway.fetch('/v1/chat/completions', {
    method: 'POST',
    headers: { prefer: 'respond-async' },
    body: JSON.stringify({ model: 'sandbox-chat', messages }),
  });
  const { id: JOB_ID } = (await job.json()) as { id: string };
  await eventually(async () => {
    for (const path of [`/v1/videos/${VIDEO_ID}`, `/v1/jobs/${JOB_ID}`]) {
      const { status } = (await (await gateway.fetch(path)).json()) as { status: string };
      assert.equal(status, 'completed');
    }
  });
  return { JOB_ID, RESPONSE_ID, VIDEO_ID };
}

/** Runs an example as it stands, as a user's shell does. */
async function runExample(source: string, made: Made): Promise<{ status: number; body: string }> {
  const isWritten = / -o /.test(source);
  const command = `${source} -s -w '\\n%{http_code}'`;
  const { stdout } = await run('sh', ['-c', command], {
    cwd: folder,
    env: { PATH: process.env.PATH, SLUICE_API_KEY: gateway.apiKey, ...made },
    maxBuffer: 1e7,
  });
  const end = stdout.lastIndexOf('\n');
  return { status: Number(stdout.slice(end + 1)), body: isWritten ? '' : stdout.slice(0, end) };
}

describe('GET /openapi.json against real answers', () => {
  test('every /v1 operation has an example that succeeds, with an answer as documented', async () => {
    const made = await make();
    const own = operations().filter(([name]) => / \/v1\//.test(name));
    // What deletes or cancels comes after what reads.
    const isLate = (name: string): number => (/^DELETE|\/cancel$/.test(name) ? 1 : 0);
    own.sort(
      ([one], [other]) => isLate(one) - isLate(other) || Number(/cancel/.test(other)) - Number(/cancel/.test(one)),
    );
    for (const [name, operation] of own) {
      if (operation.responses['101'] !== undefined) continue;
      const source = operation['x-codeSamples']?.[0]?.source;
      assert.ok(source, `${name} has no example`);
      const { status, body } = await runExample(source, made);
      assert.ok(status >= 200 && status < 300, `${name}: ${status} ${body}`);
      const content = operation.responses[String(status)]?.content as object;
      if ('application/json' in content) assertAnswer(name, status, JSON.parse(body));
    }
  });

  test('every example body matches its schema', () => {
    const ajv = newAjv();
    for (const [name, { requestBody }] of operations()) {
      for (const { schema, example } of Object.values(requestBody?.content ?? {})) {
        if (example === undefined) continue;
        const { $ref: reference } = schema as { $ref: string };
        const validate = ajv.compile({ $ref: `document${reference}` });
        assert.ok(validate(example), `${name}: ${ajv.errorsText(validate.errors)}`);
      }
    }
  });

  test('every operation that makes a job returns a documented 202 for respond-async and a 400 for an empty body', async () => {
    for (const [name, operation] of operations()) {
      const [method = '', path = ''] = name.split(' ');
      const example = operation.requestBody?.content['application/json']?.example;
      if (!path.startsWith('/v1/') || method !== 'POST' || example === undefined || path.includes('{')) continue;
      const init = { method, headers: { prefer: 'respond-async' }, body: JSON.stringify(example) };
      const response = await gateway.fetch(path, init);
      assert.equal(response.status, 202, name);
      assertAnswer(name, 202, await response.json());
      const refused = await gateway.fetch(path, { method, body: '{}' });
      assert.equal(refused.status, 400, name);
      const { $ref: reference } = operation.responses['4XX'] as { $ref: string };
      assert.equal(reference.endsWith('/AnthropicError'), path.startsWith('/v1/messages'), name);
    }
  });

  test('the console and operator routes return answers as documented', async () => {
    const ask = async (method: string, path: string, name: string, body?: object) => {
      const response = await fetch(`${gateway.url}${path}`, {
        method,
        headers: { cookie: operator.cookie, origin: gateway.url, 'content-type': 'application/json' },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const text = await response.text();
      assert.ok(response.ok, `${name}: ${response.status} ${text}`);
      const json = JSON.parse(text) as { id: string };
      assertAnswer(`${method} ${name}`, response.status, json);
      return json;
    };
    const account = await ask('POST', '/admin/v1/accounts', '/admin/v1/accounts', { name: 'new' });
    const path = `/admin/v1/accounts/${account.id}`;
    await ask('POST', `${path}/credits`, '/admin/v1/accounts/{id}/credits', { amount: 1 });
    const key = await ask('POST', `${path}/keys`, '/admin/v1/accounts/{id}/keys', {
      ...{ name: 'key', budget: { amount: 1, period: 'day' }, model_limits: { 'sandbox-chat': { rpm: 1 } } },
    });
    await ask('POST', `/admin/v1/keys/${key.id}/rotate`, '/admin/v1/keys/{id}/rotate', {});
    const user = await ask('POST', '/admin/v1/users', '/admin/v1/users', { email: 'new@example.com' });
    await ask('PATCH', `/admin/v1/users/${user.id}`, '/admin/v1/users/{id}', { role: 'user' });
    const reset = '/admin/v1/users/{id}/password-reset';
    await ask('POST', reset.replace('{id}', user.id), reset, {});
    await ask('PATCH', path, '/admin/v1/accounts/{id}', { suspended: true });
    const job = await post('/v1/videos', { model: 'sandbox-video', prompt: 'Hi' });
    for (const [name, operation] of operations()) {
      const [method = '', template = ''] = name.split(' ');
      const content = (operation.responses['200']?.content ?? {}) as object;
      const isAsked = /^\/(admin|console)\//.test(template) && !template.startsWith(authPath);
      if (method !== 'GET' || !isAsked || !('application/json' in content) || template === '/console/queues') continue;
      const id = /\/(jobs|requests|videos)\//.test(template) ? job : account.id;
      const isModel = template.endsWith('/models/{id}');
      await ask(method, template.replace('{id}', isModel ? 'sandbox-chat' : id), template);
    }
    await ask('DELETE', `/admin/v1/keys/${key.id}`, '/admin/v1/keys/{id}');
    await ask('DELETE', `/admin/v1/users/${user.id}`, '/admin/v1/users/{id}');
    await ask('DELETE', `/admin/v1/jobs/${job}`, '/admin/v1/jobs/{id}');
  });
});

describe('check of answers against the document', () => {
  const model = { id: 'm', object: 'model', created: 1, owned_by: 'someone', capability: 'chat' };
  const wrongPath = '{"error":{"message":"none","type":"t","param":null,"code":null}}';
  const kept = (more: Partial<KeptAnswer>): KeptAnswer => {
    const answer = { method: 'GET', url: '/v1/models?limit=1', status: 200, type: 'application/json; charset=utf-8' };
    return { ...answer, bytes: 10, body: JSON.stringify({ object: 'list', data: [model] }), ...more };
  };

  test('the check finds an undocumented operation, status, type or body', () => {
    for (const fine of [
      kept({}),
      kept({ url: '/v1/models/openai/gpt-4o', body: JSON.stringify(model) }),
      kept({ url: '/openai/v1/models' }),
      kept({ url: '/nowhere', status: 404, body: wrongPath }),
      kept({ url: '/openapi.json', status: 304, type: '', bytes: 0 }),
      kept({ url: '/v1/jobs/job_1/events', type: 'text/event-stream', bytes: 0 }),
      kept({ method: 'HEAD', status: 299 }),
    ]) {
      assert.equal(documented.fault(fine), undefined);
    }
    for (const [pattern, wrong] of [
      [/no such operation/, kept({ url: '/v1/nowhere' })],
      [/no such operation/, kept({ method: 'PUT' })],
      [/no status 201/, kept({ status: 201 })],
      [/type 'text\/plain'/, kept({ type: 'text/plain' })],
      [/data/, kept({ body: '{"object":"list"}' })],
      [/id must be string/, kept({ body: JSON.stringify({ object: 'list', data: [{ ...model, id: 1 }] }) })],
      [/error/, kept({ status: 404, body: '{"message":"none"}' })],
      [/no body/, kept({ bytes: 0 })],
      [/no JSON/, kept({ body: '{' })],
      [/text\/html/, kept({ url: '/nowhere', status: 500, type: 'text/html' })],
      [/error/, kept({ url: '/nowhere', status: 404, body: '{}' })],
      [/additional properties/, kept({ url: '/healthz', body: '{"status":"ok","more":1}' })],
    ] as const) {
      assert.match(documented.fault(wrong) ?? '', pattern);
    }
  });

  test('the check fails the test run for an undocumented answer, and for a run without answers', async () => {
    const check = fileURLToPath(new URL('../../support/check-answers.ts', import.meta.url));
    const codeOf = async (...answers: KeptAnswer[]): Promise<number> => {
      const kept = await mkdtemp(join(folder, 'kept-'));
      // A line is cut where its process was killed.
      const lines = [...answers.map((answer) => `${JSON.stringify(answer)}\n`), '{"met'];
      await writeFile(join(kept, 'suite.jsonl'), lines.join(''));
      const checked = execFile(process.execPath, ['--import', 'tsx', check, kept]);
      const [code] = (await once(checked, 'exit')) as [number];
      return code;
    };
    assert.equal(await codeOf(kept({})), 0);
    assert.equal(await codeOf(kept({}), kept({ status: 201 }), kept({})), 1);
    assert.equal(await codeOf(), 1);
  });
});
