import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import OpenAI from 'openai';
import { held, streamed } from '../../support/chat-requests.ts';
import { TestGateway } from '../../support/gateway.ts';

const page = 'https://app.example';
const requestsPage = readFileSync(new URL('../../../docs/api/requests-and-errors.md', import.meta.url), 'utf8');
const corsHeaders = [
  'allow-origin',
  'allow-methods',
  'allow-headers',
  'expose-headers',
  'max-age',
  'allow-credentials',
];

/** What an answer says to browsers of pages of other sites. */
function corsOf({ headers }: Response): Record<string, string> {
  const said = corsHeaders.flatMap((name) => {
    const value = headers.get(`access-control-${name}`);
    return value === null ? [] : [[name, value]];
  });
  return Object.fromEntries(said);
}

const listOf = (header: string | undefined): string[] => (header ?? '').split(', ');

describe('CORS for pages of other sites', () => {
  let gateway: TestGateway;
  let listed: string;
  let all: string;
  let none: string;
  before(async () => {
    gateway = await TestGateway.start({ apis: 0 });
    // One after the other: a start is mostly reading code, and has a deadline.
    listed = (await gateway.startApi({ CORS_ORIGINS: `${page}, https://other.example` })).url;
    all = (await gateway.startApi({ CORS_ORIGINS: '*' })).url;
    none = (await gateway.startApi()).url;
  });
  after(() => gateway?.stop());

  const preflight = (url: string, path: string, asked: string, origin = page): Promise<Response> =>
    fetch(`${url}${path}`, {
      method: 'OPTIONS',
      headers: {
        origin,
        'access-control-request-method': 'POST',
        'access-control-request-headers': asked,
      },
    });

  it('a preflight from a listed origin allows the headers of the SDKs without a key', async () => {
    // As the official clients of OpenAI and Anthropic send it from a browser.
    const client = new OpenAI({ baseURL: `${listed}/v1`, apiKey: gateway.apiKey, dangerouslyAllowBrowser: true });
    const sent: string[] = [];
    await client
      .withOptions({
        fetch: async (url, init) => {
          sent.push(...new Headers(init?.headers).keys());
          return fetch(url as string, init as RequestInit);
        },
      })
      .chat.completions.create(held('Hi'));
    assert.ok(sent.includes('authorization') && sent.some((name) => name.startsWith('x-stainless-')), sent.join());
    const more = ['idempotency-key', 'prefer', 'last-event-id', 'x-sluice-on-disconnect', 'x-api-key'];
    const anthropic = ['anthropic-version', 'anthropic-beta', 'anthropic-dangerous-direct-browser-access'];
    const openAi = ['openai-organization', 'openai-project', 'openai-beta'];
    const asked = [...sent, ...more, ...anthropic, ...openAi];
    for (const path of ['/v1/chat/completions', '/v1/videos/video_1', '/v1/unknown']) {
      const response = await preflight(listed, path, asked.join(','));
      assert.equal(response.status, 204);
      assert.equal(await response.text(), '');
      const { 'allow-headers': allowed, ...rest } = corsOf(response);
      assert.deepEqual(rest, {
        'allow-origin': page,
        'allow-methods': 'GET, HEAD, POST, DELETE',
        'max-age': '7200',
      });
      assert.deepEqual(listOf(allowed).sort(), asked.sort());
      assert.match(response.headers.get('vary') ?? '', /origin/i);
    }
    const other = corsOf(await preflight(listed, '/v1/models', 'Authorization, X-Evil, Cookie'));
    assert.equal(other['allow-headers'], 'authorization');
  });

  it('a preflight allows each header of a request that the documentation names', async () => {
    const [table = ''] = requestsPage.slice(requestsPage.indexOf('| header |')).split('\n\n');
    const cells = table.split('\n').map((row) => row.split('|')[1] ?? '');
    const names = cells.flatMap((cell) => [...cell.matchAll(/`([A-Za-z-]+)[:`]/g)].map(([, name]) => name as string));
    // The others are values.
    const named = names.filter((name) => !/^(low|normal|high|cancel|continue|gzip|zstd)$/.test(name));
    assert.ok(named.includes('X-Client-Request-Id') && named.includes('traceparent'), named.join());
    const sessions = ['session_id', 'x-claude-code-session-id', 'x-litellm-session-id', 'x-session-id'];
    const asked = [...new Set([...named, ...sessions].map((name) => name.toLowerCase()))];
    const { 'allow-headers': allowed } = corsOf(await preflight(listed, '/v1/chat/completions', asked.join(',')));
    assert.deepEqual(listOf(allowed).sort(), asked.sort());
  });

  it('a listed origin may read held and streamed answers with their own headers', async () => {
    for (const body of [held('Hi'), streamed('Hi')]) {
      const response = await gateway.fetch('/v1/chat/completions', {
        ...{ url: listed, method: 'POST', body: JSON.stringify(body) },
        headers: { origin: page, 'x-client-request-id': 'own-name' },
      });
      assert.equal(response.status, 200);
      await response.text();
      const { 'allow-origin': allowed, 'expose-headers': exposed, ...rest } = corsOf(response);
      assert.equal(allowed, page);
      assert.deepEqual(rest, {});
      assert.match(response.headers.get('vary') ?? '', /origin/i);
      const names = listOf(exposed);
      const own = [...response.headers.keys()].filter((name) => /^(x-|openai-|anthropic-|retry-)/.test(name));
      assert.ok(own.includes('x-request-id') && own.includes('x-sluice-vendor') && own.includes('x-client-request-id'));
      for (const name of own.filter((each) => each !== 'x-accel-buffering')) assert.ok(names.includes(name), name);
    }
  });

  it('a listed origin may read errors of the key, the path and the request', async () => {
    const headers = { origin: page, authorization: 'Bearer wrong' };
    const refused = await fetch(`${listed}/v1/models`, { headers });
    assert.equal(refused.status, 401);
    assert.equal(corsOf(refused)['allow-origin'], page);
    assert.equal(((await refused.json()) as { error: { code: string } }).error.code, 'invalid_api_key');
    for (const [path, body, status] of [
      ['/v1/nothing', '{}', 404],
      ['/v1/chat/completions', '{', 400],
      ['/v1/messages', '{}', 400],
    ] as const) {
      const init = { method: 'POST', body, headers: { origin: page } };
      const response = await gateway.fetch(path, { url: listed, ...init });
      assert.equal(response.status, status, path);
      assert.equal(corsOf(response)['allow-origin'], page, path);
    }
  });

  it('an unlisted origin gets no CORS headers', async () => {
    const foreign = 'https://evil.example';
    for (const response of [
      await preflight(listed, '/v1/models', 'authorization', foreign),
      await gateway.fetch('/v1/models', { url: listed, headers: { origin: foreign } }),
      await gateway.fetch('/v1/models', { url: listed, headers: { origin: 'null' } }),
    ]) {
      assert.deepEqual(corsOf(response), {});
      assert.match(response.headers.get('vary') ?? '', /origin/i);
      await response.text();
    }
  });

  it('every origin is allowed with CORS_ORIGINS=*', async () => {
    const response = await gateway.fetch('/v1/models', { url: all, headers: { origin: 'https://evil.example' } });
    assert.equal(corsOf(response)['allow-origin'], '*');
    assert.equal((await preflight(all, '/v1/models', 'authorization', 'https://evil.example')).status, 204);
  });

  it('the console, the operator API and paths outside the API never get CORS headers', async () => {
    for (const path of ['/console', '/console/api/session', '/admin/v1/workers', '/', '/metrics']) {
      const response = await fetch(`${all}${path}`, { headers: { origin: page } });
      assert.deepEqual(corsOf(response), {}, path);
      await response.text();
      const asked = await preflight(all, path, 'authorization');
      assert.deepEqual(corsOf(asked), {}, path);
      assert.notEqual(asked.status, 204);
    }
  });

  it('a listed origin may read answers of /results, which vary by origin', async () => {
    const plain = await fetch(`${listed}/results/1/2`);
    assert.equal(plain.status, 403);
    assert.match(plain.headers.get('vary') ?? '', /origin/i);
    const asked = await fetch(`${listed}/results/1/2`, { headers: { origin: page } });
    assert.equal(corsOf(asked)['allow-origin'], page);
  });

  it('no CORS headers are sent without CORS_ORIGINS or without an Origin', async () => {
    for (const response of [
      await preflight(none, '/v1/models', 'authorization'),
      await gateway.fetch('/v1/models', { url: none, headers: { origin: page } }),
      await gateway.fetch('/v1/models', { url: listed }),
    ]) {
      assert.deepEqual(corsOf(response), {});
      assert.doesNotMatch(response.headers.get('vary') ?? '', /origin/i);
      await response.text();
    }
    assert.equal((await preflight(none, '/v1/models', 'authorization')).status, 200);
  });
});
