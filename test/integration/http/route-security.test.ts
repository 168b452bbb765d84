import assert from 'node:assert/strict';
import { type IncomingHttpHeaders, request } from 'node:http';
import { after, before, describe, it } from 'node:test';
import { appRoutes } from '../../support/app-routes.ts';
import { type ConsoleSession, signIn, signUp } from '../../support/console-session.ts';
import { errorDetails } from '../../support/error-answers.ts';
import { eventually } from '../../support/eventually.ts';
import { TestGateway } from '../../support/gateway.ts';
import { makeApiKey, revokeKey } from '../../support/make-api-key.ts';

/** Who may call a route. `board`: operators who are signed in, and no key. */
type Guard = 'public' | 'key' | 'session' | 'operator' | 'board';

/** What the one tenant has, by the name that a row asks for. */
type Owned = 'job' | 'response' | 'video' | 'key';

interface Row {
  readonly guard: Guard;
  /** A request that only the guard can refuse. */
  readonly body?: object | (() => FormData);
  /** The route names something that belongs to an account: another one must not learn that it is there. */
  readonly owned?: Owned;
  readonly isSocket?: true;
}

const messages = [{ role: 'user', content: 'Hi' }];
const prompt = { model: 'sandbox-image', prompt: 'Hi', size: '256x256' };
const form = (fields: Readonly<Record<string, string>>, file: string) => (): FormData => {
  const data = new FormData();
  for (const [name, value] of Object.entries(fields)) data.set(name, value);
  data.set(file, new File(['a file'], 'file.png', { type: 'image/png' }));
  return data;
};

/** What makes jobs, with a request each. The playground has the same. */
const makers: Readonly<Record<string, NonNullable<Row['body']>>> = {
  'chat/completions': { model: 'sandbox-chat', messages },
  completions: { model: 'sandbox-instruct', prompt: 'Hi' },
  embeddings: { model: 'sandbox-embedding', input: 'Hi' },
  'images/generations': prompt,
  'images/edits': form({ model: 'sandbox-image', prompt: 'Hi' }, 'image'),
  'images/variations': form({ model: 'sandbox-image' }, 'image'),
  'audio/transcriptions': form({ model: 'sandbox-transcription' }, 'file'),
  'audio/translations': form({ model: 'sandbox-transcription' }, 'file'),
  'audio/speech': { model: 'sandbox-speech', input: 'Hi', voice: 'alloy' },
  responses: { model: 'sandbox-chat', input: 'Hi' },
  messages: { model: 'sandbox-chat', messages, max_tokens: 9 },
  'messages/count_tokens': { model: 'sandbox-chat', messages },
  videos: { model: 'sandbox-video', prompt: 'Hi' },
};

function makerRows(prefix: string, guard: Guard): Record<string, Row> {
  const rows = Object.entries(makers).map(([path, body]) => [`POST ${prefix}/${path}`, { guard, body }] as const);
  return {
    ...Object.fromEntries(rows),
    [`POST ${prefix}/videos/:id/remix`]: { guard, body: { prompt: 'Hi' }, owned: 'video' },
  };
}

/** Every route there is. A new one without a row here fails the first test. */
const rows: Readonly<Record<string, Row>> = {
  'GET /': { guard: 'public' },
  'GET /docs': { guard: 'public' },
  'GET /favicon.ico': { guard: 'public' },
  'GET /llms.txt': { guard: 'public' },
  'GET /openapi.json': { guard: 'public' },
  'GET /healthz': { guard: 'public' },
  'GET /health': { guard: 'public' },
  'GET /health/liveliness': { guard: 'public' },
  'GET /health/liveness': { guard: 'public' },
  'GET /readyz': { guard: 'public' },
  'GET /health/readiness': { guard: 'public' },
  // To this machine, where the tests run.
  'GET /metrics': { guard: 'public' },
  // Its link is signed: see results.test.ts.
  'GET /results/:hour/:name': { guard: 'public' },
  ...makerRows('/v1', 'key'),
  'GET /v1/models': { guard: 'key' },
  'GET /v1/models/*id': { guard: 'key' },
  'GET /v1/responses': { guard: 'key', isSocket: true },
  'GET /v1/responses/:id': { guard: 'key', owned: 'response' },
  'DELETE /v1/responses/:id': { guard: 'key', owned: 'response' },
  'POST /v1/responses/:id/cancel': { guard: 'key', owned: 'response' },
  'GET /v1/responses/:id/input_items': { guard: 'key', owned: 'response' },
  'GET /v1/videos': { guard: 'key' },
  'GET /v1/videos/:id': { guard: 'key', owned: 'video' },
  'GET /v1/videos/:id/content': { guard: 'key', owned: 'video' },
  'DELETE /v1/videos/:id': { guard: 'key', owned: 'video' },
  'GET /v1/key': { guard: 'key' },
  'GET /v1/usage': { guard: 'key' },
  'GET /v1/jobs': { guard: 'key' },
  'GET /v1/jobs/:id': { guard: 'key', owned: 'job' },
  'GET /v1/jobs/:id/events': { guard: 'key', owned: 'job' },
  'GET /v1/jobs/:id/ws': { guard: 'key', owned: 'job', isSocket: true },
  'DELETE /v1/jobs/:id': { guard: 'key', owned: 'job' },
  'GET /console/api/settings': { guard: 'public' },
  // Each of its paths has guards of its own: see the tests of accounts.
  'ALL /console/api/auth/*path': { guard: 'public' },
  'GET /console/api/session': { guard: 'session' },
  'GET /console/api/models': { guard: 'session' },
  'GET /console/api/models/*id': { guard: 'session' },
  'GET /console/api/usage': { guard: 'session' },
  'GET /console/api/usage.csv': { guard: 'session' },
  'GET /console/api/jobs': { guard: 'session' },
  'GET /console/api/jobs.csv': { guard: 'session' },
  'GET /console/api/jobs/live': { guard: 'session' },
  'GET /console/api/jobs/:id': { guard: 'session', owned: 'job' },
  'DELETE /console/api/jobs/:id': { guard: 'session', owned: 'job' },
  'GET /console/api/requests/:id': { guard: 'session', owned: 'job' },
  'GET /console/api/jobs/:id/events': { guard: 'session', owned: 'job' },
  'GET /console/api/keys': { guard: 'session' },
  'POST /console/api/keys': { guard: 'session', body: { name: 'mine' } },
  'PATCH /console/api/keys/:id': { guard: 'session', owned: 'key', body: { name: 'other' } },
  'DELETE /console/api/keys/:id': { guard: 'session', owned: 'key' },
  'POST /console/api/keys/:id/rotate': { guard: 'session', owned: 'key', body: { overlap_seconds: 0 } },
  ...makerRows('/console/api/v1', 'session'),
  'GET /console/api/v1/models': { guard: 'session' },
  'GET /console/api/v1/models/*id': { guard: 'session' },
  'GET /console/api/v1/videos': { guard: 'session' },
  'GET /console/api/v1/videos/:id': { guard: 'session', owned: 'video' },
  'GET /console/api/v1/videos/:id/content': { guard: 'session', owned: 'video' },
  'DELETE /console/api/v1/videos/:id': { guard: 'session', owned: 'video' },
  'GET /console/api/v1/jobs/:id': { guard: 'session', owned: 'job' },
  'GET /console/api/v1/jobs/:id/events': { guard: 'session', owned: 'job' },
  'DELETE /console/api/v1/jobs/:id': { guard: 'session', owned: 'job' },
  'GET /admin/v1/accounts': { guard: 'operator' },
  'POST /admin/v1/accounts': { guard: 'operator', body: { name: 'new' } },
  'GET /admin/v1/accounts/:id': { guard: 'operator' },
  'PATCH /admin/v1/accounts/:id': { guard: 'operator', body: { suspended: true } },
  'GET /admin/v1/accounts/:id/credits': { guard: 'operator' },
  'POST /admin/v1/accounts/:id/credits': { guard: 'operator', body: { amount: 1000, note: 'mine' } },
  'GET /admin/v1/accounts/:id/keys': { guard: 'operator' },
  'POST /admin/v1/accounts/:id/keys': { guard: 'operator', body: { name: 'mine', kind: 'operator' } },
  'PATCH /admin/v1/keys/:id': { guard: 'operator', body: { name: 'mine' } },
  'DELETE /admin/v1/keys/:id': { guard: 'operator' },
  'POST /admin/v1/keys/:id/rotate': { guard: 'operator', body: { overlap_seconds: 0 } },
  'GET /admin/v1/users': { guard: 'operator' },
  'POST /admin/v1/users': { guard: 'operator', body: { email: 'mine@example.com', role: 'operator' } },
  'PATCH /admin/v1/users/:id': { guard: 'operator', body: { role: 'operator' } },
  'DELETE /admin/v1/users/:id': { guard: 'operator' },
  'POST /admin/v1/users/:id/password-reset': { guard: 'operator' },
  'GET /admin/v1/usage': { guard: 'operator' },
  'GET /admin/v1/usage.csv': { guard: 'operator' },
  'GET /admin/v1/jobs': { guard: 'operator' },
  'GET /admin/v1/jobs.csv': { guard: 'operator' },
  'GET /admin/v1/jobs/live': { guard: 'operator' },
  'GET /admin/v1/jobs/:id': { guard: 'operator' },
  'DELETE /admin/v1/jobs/:id': { guard: 'operator' },
  'GET /admin/v1/requests/:id': { guard: 'operator' },
  'GET /admin/v1/workers': { guard: 'operator' },
  'GET /admin/v1/vendors': { guard: 'operator' },
  'GET /admin/v1/models': { guard: 'operator' },
  'GET /admin/v1/queues': { guard: 'operator' },
  'GET /console/queues{/*path}': { guard: 'board' },
};

/** Ids that nobody has, of the form of each. */
const unknownIds: Readonly<Record<Owned, string>> = {
  job: `job_${'0'.repeat(32)}`,
  response: `resp_${'0'.repeat(32)}`,
  video: `video_${'0'.repeat(32)}`,
  key: `key_${'0'.repeat(32)}`,
};

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

describe('every route', () => {
  let gateway: TestGateway;
  let ownerKey: string;
  let strangerKey: string;
  let revokedKey: string;
  let operatorKey: string;
  let revokedOperatorKey: string;
  let stranger: ConsoleSession;
  let operator: ConsoleSession;
  let owned: Readonly<Record<Owned, string>>;
  const admin = { SLUICE_ADMIN_EMAIL: 'operator@example.com', SLUICE_ADMIN_PASSWORD: 'an operator password' };

  before(async () => {
    gateway = await TestGateway.start({ settings: admin });
    ownerKey = gateway.apiKey;
    [strangerKey, revokedKey, operatorKey, revokedOperatorKey] = (await Promise.all([
      makeApiKey(gateway, { accountId: 'stranger' }),
      makeApiKey(gateway, { accountId: 'stranger' }),
      makeApiKey(gateway, { kind: 'operator' }),
      makeApiKey(gateway, { kind: 'operator' }),
    ])) as [string, string, string, string];
    // This process knows them before they are revoked.
    await gateway.fetch('/v1/models', { headers: { authorization: `Bearer ${revokedKey}` } });
    await gateway.fetch('/admin/v1/workers', { headers: { authorization: `Bearer ${revokedOperatorKey}` } });
    await revokeKey(gateway, revokedKey);
    await revokeKey(gateway, revokedOperatorKey);
    stranger = await signUp(gateway, 'stranger@example.com');
    operator = await signIn(gateway, admin.SLUICE_ADMIN_EMAIL, admin.SLUICE_ADMIN_PASSWORD);
    owned = await makeOwned();
  });
  after(() => gateway?.stop());

  /** One of each kind, of the first account. */
  async function makeOwned(): Promise<Record<Owned, string>> {
    const make = async (path: string, body: object, headers: Record<string, string> = {}): Promise<string> => {
      const response = await gateway.fetch(path, { method: 'POST', body: JSON.stringify(body), headers });
      const { id } = (await response.json()) as { id: string };
      return id;
    };
    const job = await make('/v1/chat/completions', { model: 'sandbox-chat', messages }, { prefer: 'respond-async' });
    const response = await make('/v1/responses', { model: 'sandbox-chat', input: 'Hi' });
    const video = await make('/v1/videos', { model: 'sandbox-video', prompt: 'Hi' });
    for (const path of [`/v1/jobs/${job}`, `/v1/responses/${response}`, `/v1/videos/${video}`]) {
      await eventually(async () => assert.equal((await gateway.fetch(path)).status, 200));
    }
    const keys = await fetch(`${gateway.url}/console/api/keys`, { headers: { cookie: operator.cookie } });
    const { data } = (await keys.json()) as { data: { id: string }[] };
    return { job, response, video, key: data[0]?.id as string };
  }

  const pathOf = (route: string, id: string): string =>
    (route.split(' ')[1] ?? '').replace('{/*path}', '').replace('*id', 'sandbox-chat').replace(':id', id);

  /** @param as the method and the path that are sent; left out: the route's own */
  async function call(
    route: string,
    id: string,
    headers: Record<string, string>,
    as: { readonly method?: string; readonly path?: string } = {},
  ): Promise<Answer> {
    const { body, isSocket } = rows[route] as Row;
    const { method = route.split(' ')[0] ?? '', path = pathOf(route, id) } = as;
    const sent = typeof body === 'function' ? new Response(body()) : undefined;
    const content =
      sent === undefined
        ? { bytes: Buffer.from(body === undefined ? '' : JSON.stringify(body)), type: 'application/json' }
        : { bytes: Buffer.from(await sent.arrayBuffer()), type: sent.headers.get('content-type') as string };
    const handshake = { connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' };
    return await new Promise((resolve, reject) => {
      // The path as it is: to make a URL of it would put it right.
      const { hostname: host, port } = new URL(gateway.url);
      const asked = request({
        ...{ host, port, path, method },
        headers: {
          ...(method === 'GET' ? {} : { 'content-type': content.type, 'content-length': content.bytes.length }),
          ...(isSocket === true && { ...handshake, 'sec-websocket-key': Buffer.alloc(16).toString('base64') }),
          ...headers,
        },
      });
      asked.once('error', reject);
      asked.once('upgrade', (_response, socket) => {
        socket.destroy();
        reject(new Error(`${route} opened a socket`));
      });
      asked.once('response', async (response) => {
        let text = '';
        for await (const chunk of response) text += chunk;
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text });
      });
      asked.end(method === 'GET' ? undefined : content.bytes);
    });
  }

  const bearer = (key: string): Record<string, string> => ({ authorization: `Bearer ${key}` });
  // As a page of the gateway's own sends it.
  const signedIn = ({ cookie }: ConsoleSession): Record<string, string> => ({ cookie, origin: gateway.url });

  /** Calls a route and checks that it is refused, in the shape of its errors, without a word of what it would have shown. */
  async function assertRefused(
    route: string,
    who: string,
    headers: Record<string, string>,
    status: number,
  ): Promise<void> {
    const id = owned[rows[route]?.owned ?? 'job'];
    const answer = await call(route, id, headers);
    assert.equal(answer.status, status, `${route} for ${who}: ${answer.text}`);
    const body = JSON.parse(answer.text) as { error: { message: string } };
    assert.ok(body.error.message.length > 0);
    for (const key of [ownerKey, strangerKey, revokedKey, operatorKey]) assert.ok(!answer.text.includes(key), route);
  }

  const guarded = (...guards: readonly Guard[]): string[] =>
    Object.keys(rows).filter((route) => guards.includes(rows[route]?.guard as Guard));

  it('every route of the application has a row in the security table, and the table has no other', async () => {
    assert.deepEqual([...new Set(await appRoutes())].sort(), Object.keys(rows).sort());
  });

  it('every public route answers any caller', async () => {
    for (const route of guarded('public').filter((each) => each.startsWith('GET ') && !each.includes(':'))) {
      const { status } = await call(route, '', {});
      assert.equal(status, 200, route);
    }
  });

  it('every key route refuses missing, unknown and revoked keys, sessions and operator keys', async () => {
    for (const route of guarded('key')) {
      await assertRefused(route, 'nobody', {}, 401);
      await assertRefused(route, 'an unknown key', bearer(`sk-sluice-${'x'.repeat(43)}`), 401);
      await assertRefused(route, 'what is no key', { authorization: 'Basic YTpi' }, 401);
      await assertRefused(route, 'a revoked key', bearer(revokedKey), 401);
      await assertRefused(route, 'a session', signedIn(operator), 401);
      await assertRefused(route, 'an operator key', bearer(operatorKey), 403);
    }
  });

  it('every session route refuses missing and forged sessions, and keys', async () => {
    for (const route of guarded('session')) {
      await assertRefused(route, 'nobody', {}, 401);
      const cookie = stranger.cookie.replace(/=[^;.]{4}/, '=xxxx');
      await assertRefused(route, 'a made-up session', signedIn({ cookie }), 401);
      await assertRefused(route, 'a key', bearer(ownerKey), 401);
      await assertRefused(route, 'an operator key', bearer(operatorKey), 401);
    }
  });

  it('every route that changes something refuses a session from a page of another site', async () => {
    for (const route of guarded('session', 'operator').filter((each) => !each.startsWith('GET '))) {
      const { cookie } = operator;
      await assertRefused(route, 'a foreign page', { cookie, origin: 'https://evil.example' }, 403);
      await assertRefused(route, 'a page without an origin', { cookie, origin: 'null' }, 403);
    }
  });

  it('every operator route refuses missing, unknown, revoked and standard keys, and sessions of users', async () => {
    for (const route of guarded('operator')) {
      await assertRefused(route, 'nobody', {}, 401);
      await assertRefused(route, 'an unknown key', bearer('sk-sluice-nobody'), 401);
      await assertRefused(route, 'a revoked operator key', bearer(revokedOperatorKey), 401);
      await assertRefused(route, 'a standard key', bearer(ownerKey), 403);
      await assertRefused(route, "a user's session", signedIn(stranger), 403);
    }
  });

  it('every operator route is unreachable by other spellings of its path and by other methods', async () => {
    const id = owned.job;
    const wrap = (path: string): string[] => [
      path.toUpperCase(),
      `${path}/`,
      `/${path}`,
      `/v1/..${path}`,
      `/.${path}`,
      `${path}%2f`,
      `${path};.json`,
      path.replace('/admin', '/%61dmin').replace('/console', '/%63onsole'),
      path.replace('/v1/', '/v1//'),
      path.replace('/v1', '/v1/.'),
    ];
    for (const route of guarded('operator', 'board')) {
      const [method = '', path] = [route.split(' ')[0], pathOf(route, id)];
      for (const spelled of wrap(path)) {
        const { status, text } = await call(route, id, signedIn(stranger), { path: spelled });
        // Under /console any path is a page of the console, the same for everybody.
        const isPage = status === 200 && text.includes('<div id="root">');
        assert.ok(isPage || [401, 403, 404, 405].includes(status), `${method} ${spelled}: ${status} ${text}`);
      }
      for (const other of ['HEAD', 'GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'TRACE', 'PROPFIND']) {
        const headers = { ...signedIn(stranger), 'x-http-method-override': method };
        const { status, text } = await call(route, id, headers, { method: other });
        assert.ok([401, 403, 404, 405].includes(status), `${other} ${path}: ${status} ${text}`);
      }
      const options = await call(route, id, signedIn(stranger), { method: 'OPTIONS' });
      assert.deepEqual([options.status < 300, options.text], [true, ''], path);
      assert.equal(options.headers['access-control-allow-origin'], undefined);
    }
  });

  it('every console and operator route sends its security headers, for every spelling and answer', async () => {
    const id = owned.job;
    for (const route of guarded('session', 'operator', 'board')) {
      const path = pathOf(route, id);
      for (const spelled of [path, `${path}/`, path.toUpperCase(), `${path}/nowhere/at/all`]) {
        const { headers } = await call(route, id, {}, { path: spelled });
        assert.match(String(headers['content-security-policy']), /frame-ancestors 'none'/, spelled);
        assert.equal(headers['x-frame-options'], 'DENY', spelled);
        if (!path.startsWith('/console/queues')) assert.equal(headers['cache-control'], 'no-store', spelled);
      }
    }
  });

  it('GET /console/api/session returns 401 for a malformed cookie', async () => {
    for (const value of ['%', '%E0%A4%A', 'a.b.c', '""', 'x'.repeat(4000), '\u00ff\u00fe', 'a=b=c']) {
      const { status, text } = await call('GET /console/api/session', '', { cookie: `sluice.session_token=${value}` });
      assert.equal(status, 401, `${value}: ${text}`);
    }
  });

  it('every queue board route refuses missing sessions, users and keys', async () => {
    for (const route of guarded('board')) {
      await assertRefused(route, 'nobody', {}, 401);
      await assertRefused(route, "a user's session", signedIn(stranger), 403);
      await assertRefused(route, 'an operator key', bearer(operatorKey), 401);
      await assertRefused(route, 'a standard key', bearer(ownerKey), 401);
    }
  });

  it('every route returns the same 404 for an object of another account as for a missing one', async () => {
    for (const route of Object.keys(rows)) {
      const { owned: kind, guard } = rows[route] as Row;
      if (kind === undefined) continue;
      const headers = guard === 'key' ? bearer(strangerKey) : signedIn(stranger);
      const [id, unknown] = [owned[kind], unknownIds[kind]];
      const [others, none] = [await call(route, id, headers), await call(route, unknown, headers)];
      assert.equal(others.status, 404, `${route}: ${others.text}`);
      errorDetails(JSON.parse(others.text));
      assert.deepEqual([others.status, others.text.replaceAll(id, unknown)], [none.status, none.text], route);
    }
    // All of it is still there.
    const { job, response, video } = owned;
    for (const path of [`/v1/jobs/${job}`, `/v1/responses/${response}`, `/v1/videos/${video}`]) {
      assert.equal((await gateway.fetch(path)).status, 200, path);
    }
  });
});
