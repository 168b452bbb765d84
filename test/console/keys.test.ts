import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Redis } from 'ioredis';
import { AdminKeys, type KeyAnswer } from '../support/admin-keys.ts';
import { assertErrorAnswer } from '../support/error-answers.ts';
import { type ApiProcess, TestGateway } from '../support/gateway.ts';
import { makeApiKey } from '../support/make-api-key.ts';

describe('API keys over HTTP', () => {
  let gateway: TestGateway;
  let keys: AdminKeys;
  let other: ApiProcess;
  before(async () => {
    gateway = await TestGateway.start({ apis: 2, settings: { LOG_LEVEL: 'trace' } });
    other = gateway.apis[1] as ApiProcess;
    keys = await AdminKeys.open(gateway);
  });
  after(() => gateway?.stop());

  const models = (key: string, url?: string): Promise<Response> =>
    gateway.fetch('/v1/models', { headers: { authorization: `Bearer ${key}` }, ...(url && { url }) });
  const chat = (key: string, url?: string): Promise<Response> =>
    gateway.fetch('/v1/chat/completions', {
      method: 'POST',
      headers: { authorization: `Bearer ${key}` },
      body: JSON.stringify({ model: 'sandbox-chat', messages: [{ role: 'user', content: 'Hello' }] }),
      ...(url && { url }),
    });
  const statusOf = async (asked: Promise<Response>): Promise<number> => {
    const response = await asked;
    const text = await response.text();
    assert.ok(response.status < 500, text);
    return response.status;
  };

  const settings = {
    expires_at: 4_000_000_000_000,
    capabilities: ['chat', 'image'],
    models: ['sandbox-*'],
    rpm: 600,
    tpm: 1_000_000,
    concurrency: 9,
    model_limits: { 'sandbox-chat': { rpm: 60 } },
    on_disconnect: 'continue',
    unsupported_parameters: 'drop',
    cache_breakpoints: 'automatic',
    priority: 'low',
    max_priority: 'high',
    single_flight: true,
    cache_seconds: 604_800,
    vendor_ids: ['file-1', 'vs_*'],
  };

  it('API keys over HTTP are made with all they can be given, and shown as they are', async () => {
    const before = Date.now();
    const created = await keys.create({ name: '  of a team ', ...settings, budget: { amount: 12.5, period: 'month' } });
    const { id, key, created_at: createdAt, ...rest } = created;
    assert.match(key, /^sk-sluice-[A-Za-z0-9_-]{43}$/);
    assert.ok(createdAt >= before && createdAt <= Date.now());
    assert.deepEqual(rest, {
      object: 'key',
      account: 'default',
      name: 'of a team',
      prefix: key.slice(0, 16),
      kind: 'standard',
      status: 'active',
      last_used_at: null,
      revoked_at: null,
      rotated_to: null,
      ...settings,
      budget: { amount: 12.5, period: 'month', spent: 0 },
    });
    assert.equal(await statusOf(chat(key)), 200);
    const { data } = await keys.answer(200, 'GET', '/accounts/default/keys');
    const { key: _key, ...shown } = created;
    const listed = data.find((entry: KeyAnswer) => entry.id === id);
    assert.deepEqual({ ...listed, last_used_at: null, budget: null }, { ...shown, budget: null });
  });

  it('API keys over HTTP are changed field by field; null takes a limit away', async () => {
    const { id } = await keys.create({ ...settings, budget: { amount: 1, period: 'day' } });
    const changed = await keys.change(id, { name: 'renamed', rpm: 5, models: null, budget: null, model_limits: null });
    assert.deepEqual(
      [changed.name, changed.rpm, changed.models, changed.budget, changed.model_limits, changed.tpm, changed.key],
      ['renamed', 5, null, null, null, settings.tpm, undefined],
    );
  });

  it('API keys over HTTP name the field at fault', async () => {
    const { id } = await keys.create();
    const faults: [fields: Record<string, unknown>, param: string | null][] = [
      [{ name: '' }, 'name'],
      [{ name: 'x'.repeat(101) }, 'name'],
      [{ name: 5 }, 'name'],
      [{ expires_at: Date.now() - 1 }, 'expires_at'],
      [{ expires_at: '2030-01-01' }, 'expires_at'],
      [{ capabilities: [] }, 'capabilities'],
      [{ capabilities: ['dance'] }, 'capabilities[0]'],
      [{ models: ['gpt-*-mini'] }, 'models[0]'],
      [{ models: [''] }, 'models[0]'],
      [{ rpm: 0 }, 'rpm'],
      [{ tpm: 1.5 }, 'tpm'],
      [{ concurrency: -1 }, 'concurrency'],
      [{ model_limits: { 'sandbox-chat': { rpm: 0 } } }, 'model_limits'],
      [{ budget: { amount: -1, period: 'month' } }, 'budget.amount'],
      [{ budget: { amount: 1e-10, period: 'month' } }, 'budget.amount'],
      [{ budget: { amount: 1, period: 'year' } }, 'budget.period'],
      [{ budget: 5 }, 'budget'],
      [{ on_disconnect: 'stay' }, 'on_disconnect'],
      [{ unsupported_parameters: 'ignore' }, 'unsupported_parameters'],
      [{ cache_breakpoints: 'always' }, 'cache_breakpoints'],
      [{ priority: 'highest' }, 'priority'],
      [{ max_priority: 2 }, 'max_priority'],
      [{ single_flight: 1 }, 'single_flight'],
      ...[0, -1, 1.5, '60', 604_801].map((seconds): [Record<string, unknown>, string] => [
        { cache_seconds: seconds },
        'cache_seconds',
      ]),
      [{ vendor_ids: [] }, 'vendor_ids'],
      [{ vendor_ids: ['file-*-1'] }, 'vendor_ids[0]'],
      [{ colour: 'red' }, null],
    ];
    for (const [fields, param] of faults) {
      const asked = [
        keys.ask('POST', '/accounts/default/keys', { name: 'a key', ...fields }),
        keys.ask('PATCH', `/keys/${id}`, fields),
      ];
      for (const response of await Promise.all(asked)) {
        const error = await assertErrorAnswer(response, 400, 'invalid_request_error');
        if (param === null) assert.match(error.message, /colour/);
        else assert.ok(error.param?.startsWith(param), `${error.param}: ${error.message}`);
      }
    }
    for (const overlap of [-1, 30 * 86_400 + 1, '1d']) {
      const response = await keys.ask('POST', `/keys/${id}/rotate`, { overlap_seconds: overlap });
      assert.equal((await assertErrorAnswer(response, 400, 'invalid_request_error')).param, 'overlap_seconds');
    }
    const nameless = await keys.ask('POST', '/accounts/default/keys', { rpm: 5 });
    assert.equal((await assertErrorAnswer(nameless, 400, 'invalid_request_error')).param, 'name');
    const unpaged = await keys.ask('GET', '/accounts/default/keys?limit=0');
    assert.equal((await assertErrorAnswer(unpaged, 400, 'invalid_request_error')).param, 'limit');
    const nowhere = await keys.ask('GET', '/accounts/default/keys?after=key_none');
    assert.equal((await assertErrorAnswer(nowhere, 400, 'invalid_request_error')).param, 'after');
  });

  it('API keys over HTTP that do not exist, accounts that do not, and hidden keys are not found', async () => {
    await makeApiKey(gateway, { accountId: 'playing', name: 'hidden', kind: 'console' });
    const { data } = await keys.answer(200, 'GET', '/accounts/playing/keys');
    assert.deepEqual(data, []);
    for (const id of ['key_none', 'nothing']) {
      await assertErrorAnswer(await keys.ask('PATCH', `/keys/${id}`, { rpm: 5 }), 404, 'not_found');
      await assertErrorAnswer(await keys.ask('DELETE', `/keys/${id}`), 404, 'not_found');
      await assertErrorAnswer(await keys.ask('POST', `/keys/${id}/rotate`, {}), 404, 'not_found');
    }
    await assertErrorAnswer(await keys.ask('GET', '/accounts/nobody/keys'), 404, 'not_found');
    await assertErrorAnswer(await keys.ask('POST', '/accounts/nobody/keys', { name: 'x' }), 404, 'not_found');
  });

  it('API keys over HTTP are listed page by page, the newest first, each once', async () => {
    await makeApiKey(gateway, { accountId: 'paging', name: '0' });
    for (const name of ['1', '2', '3', '4']) await keys.create({ name }, 'paging');
    const names: string[] = [];
    let next: string | null = null;
    do {
      const page: KeyAnswer = await keys.answer(
        200,
        'GET',
        `/accounts/paging/keys?limit=2${next === null ? '' : `&after=${next}`}`,
      );
      assert.equal(page.object, 'list');
      assert.equal(page.has_more, page.next !== null);
      names.push(...page.data.map(({ name }: KeyAnswer) => name));
      next = page.next;
    } while (next !== null);
    assert.equal(names.length, 5);
    assert.deepEqual([...names].sort(), ['0', '1', '2', '3', '4']);
  });

  it('API keys over HTTP are found by a part of the name or of what is shown of the key, or by id, in the account alone', async () => {
    await makeApiKey(gateway, { accountId: 'searched', name: 'First' });
    await makeApiKey(gateway, { accountId: 'searched-not', name: 'First' });
    for (const name of ['Nightly 100%', 'nightly report', 'Other']) await keys.create({ name }, 'searched');
    const other = await keys.create({ name: 'Nightly, too' }, 'searched-not');
    const found = async (search: string): Promise<string[]> => {
      const path = `/accounts/searched/keys?limit=1&search=${encodeURIComponent(search)}`;
      const first = await keys.answer(200, 'GET', path);
      const rest = first.has_more ? await keys.answer(200, 'GET', `${path}&after=${first.next}`) : { data: [] };
      return [...first.data, ...rest.data].map(({ name }: KeyAnswer) => name).sort();
    };
    assert.deepEqual(await found('NIGHTLY'), ['Nightly 100%', 'nightly report']);
    assert.deepEqual(await found('0%'), ['Nightly 100%']);
    const { data } = await keys.answer(200, 'GET', '/accounts/searched/keys?search=other');
    assert.deepEqual(await found(data[0].id), ['Other']);
    assert.deepEqual(await found(data[0].prefix), ['Other']);
    assert.deepEqual(await found(other.id), []);
    await assertErrorAnswer(
      await keys.ask('GET', '/accounts/searched/keys?search=a&search=b'),
      400,
      'invalid_request_error',
    );
  });

  it('API keys over HTTP are changed for every process at once, also for one that remembers the key', async () => {
    const { id, key } = await keys.create();
    for (const url of [gateway.url, other.url]) {
      assert.equal(await statusOf(chat(key, url)), 200);
      assert.equal(await statusOf(models(key, url)), 200);
    }
    await keys.change(id, { capabilities: ['image'] });
    // Nothing has told the other process: it sees it with the next request.
    const refused = await assertErrorAnswer(await chat(key, other.url), 403, 'permission_denied');
    assert.match(refused.message, /`chat`/);
    await keys.change(id, { capabilities: null, models: ['sandbox-image'] });
    const { data } = (await (await models(key, other.url)).json()) as { data: { id: string }[] };
    assert.deepEqual(
      data.map((model) => model.id),
      ['sandbox-image'],
    );
    assert.equal(await statusOf(chat(key)), 403);
    await keys.change(id, { models: null });
    assert.deepEqual([await statusOf(chat(key)), await statusOf(chat(key, other.url))], [200, 200]);
    await keys.change(id, { rpm: 1 });
    await statusOf(chat(key));
    assert.equal(await statusOf(chat(key, other.url)), 429);
  });

  it('API keys over HTTP are refused everywhere once they are revoked, which can be repeated, and can no longer be changed', async () => {
    const { id, key } = await keys.create();
    assert.deepEqual([await statusOf(chat(key)), await statusOf(chat(key, other.url))], [200, 200]);
    const revoked = await keys.revoke(id);
    assert.equal(revoked.status, 'revoked');
    for (const url of [gateway.url, other.url]) {
      await assertErrorAnswer(await chat(key, url), 401, 'invalid_api_key');
      await assertErrorAnswer(await models(key, url), 401, 'invalid_api_key');
    }
    assert.equal((await keys.revoke(id)).revoked_at, revoked.revoked_at);
    await assertErrorAnswer(await keys.ask('PATCH', `/keys/${id}`, { rpm: 5 }), 400, 'invalid_request_error');
    await assertErrorAnswer(await keys.ask('POST', `/keys/${id}/rotate`, {}), 400, 'invalid_request_error');
  });

  it('API keys over HTTP stay revoked when changes race with the revocation', async () => {
    for (let round = 0; round < 5; round++) {
      const { id, key } = await keys.create();
      assert.equal(await statusOf(chat(key, other.url)), 200);
      const statuses = await Promise.all([
        ...[1, 2, 3].map((rpm) => statusOf(keys.ask('PATCH', `/keys/${id}`, { rpm: rpm * 100 }, other.url))),
        statusOf(keys.ask('DELETE', `/keys/${id}`)),
        ...[4, 5].map((rpm) => statusOf(keys.ask('PATCH', `/keys/${id}`, { rpm: rpm * 100 }))),
      ]);
      assert.ok(statuses.every((status) => status === 200 || status === 400));
      assert.deepEqual([await statusOf(chat(key)), await statusOf(chat(key, other.url))], [401, 401]);
    }
  });

  it('expire by the clock', async () => {
    const { key, expires_at: expiresAt } = await keys.create({ expires_at: Date.now() + 1500 });
    assert.equal(await statusOf(models(key)), 200);
    await new Promise((resolve) => setTimeout(resolve, expiresAt - Date.now() + 20));
    for (const asked of [models(key), models(key, other.url), chat(key), chat(key, other.url)]) {
      assert.match((await assertErrorAnswer(await asked, 401, 'invalid_api_key')).message, /expired/);
    }
  });

  it('API keys over HTTP are rotated with an overlap, in which both are valid, or at once', async () => {
    const { id, key } = await keys.create(settings);
    assert.equal(await statusOf(chat(key, other.url)), 200);
    const rotated = await keys.rotate(id);
    assert.notEqual(rotated.key, key);
    for (const [name, value] of Object.entries(settings)) assert.deepEqual(rotated[name], value, name);
    const { data } = await keys.answer(200, 'GET', '/accounts/default/keys');
    const old = data.find((entry: KeyAnswer) => entry.id === id);
    assert.equal(old.rotated_to, rotated.id);
    assert.ok(Math.abs(old.expires_at - Date.now() - 86_400_000) < 60_000);
    assert.deepEqual([await statusOf(chat(key, other.url)), await statusOf(chat(rotated.key, other.url))], [200, 200]);
    const last = await keys.rotate(rotated.id, { overlap_seconds: 0 });
    assert.deepEqual([await statusOf(chat(rotated.key, other.url)), await statusOf(chat(last.key))], [401, 200]);
  });

  it('API keys over HTTP that are rotated again, as the text of the new one was lost, do not pass on the end of their overlap', async () => {
    for (const expiresAt of [null, Date.now() + 90 * 86_400_000]) {
      const { id } = await keys.create({ expires_at: expiresAt });
      const lost = await keys.rotate(id, { overlap_seconds: 600 });
      assert.equal(lost.expires_at, expiresAt);
      assert.equal((await keys.rotate(id, { overlap_seconds: 600 })).expires_at, expiresAt);
      // Nor if the one whose text was lost was itself replaced.
      const { rotated_to: second } = await keys.revoke(id);
      await keys.rotate(second, { overlap_seconds: 60 });
      assert.equal((await keys.rotate(second, { overlap_seconds: 60 })).expires_at, expiresAt);
    }
  });

  it('API keys over HTTP that were rotated at once, while Redis took no writes, end when that is repeated', async () => {
    const redis = new Redis(gateway.redisUrl);
    const { id, key } = await keys.create({ name: 'leaked' });
    const change = (method: string, path: string, body: object) => keys.ask(method, `/keys/${id}${path}`, body);
    try {
      assert.equal(await statusOf(chat(key)), 200);
      await redis.config('SET', 'min-replicas-to-write', '3');
      await assertErrorAnswer(await change('POST', '/rotate', { overlap_seconds: 0 }), 503, 'service_unavailable');
      await redis.config('SET', 'min-replicas-to-write', '0');
      await assertErrorAnswer(await change('POST', '/rotate', { overlap_seconds: 0 }), 400, 'invalid_request_error');
      assert.deepEqual([await statusOf(chat(key)), await statusOf(chat(key, other.url))], [401, 401]);
    } finally {
      await redis.config('SET', 'min-replicas-to-write', '0');
      redis.disconnect();
    }
  });

  it('API keys over HTTP of a short overlap end with it', async () => {
    const { id, key } = await keys.create();
    assert.equal(await statusOf(chat(key, other.url)), 200);
    const rotated = await keys.rotate(id, { overlap_seconds: 1 });
    await new Promise((resolve) => setTimeout(resolve, 1100));
    assert.deepEqual([await statusOf(chat(key, other.url)), await statusOf(chat(rotated.key))], [401, 200]);
  });

  it('API keys over HTTP for operators are for /admin/v1 only, and others are not for it', async () => {
    const { id, key } = await keys.create({ kind: 'operator' });
    for (const asked of [models(key), chat(key), chat(key, other.url)]) {
      await assertErrorAnswer(await asked, 403, 'permission_denied');
    }
    const asOperator = (text: string) =>
      gateway.fetch('/admin/v1/accounts/default/keys', { headers: { authorization: `Bearer ${text}` } });
    assert.equal(await statusOf(asOperator(key)), 200);
    await assertErrorAnswer(await asOperator((await keys.create()).key), 403, 'permission_denied');
    await assertErrorAnswer(await asOperator('sk-sluice-nothing'), 401, 'invalid_api_key');
    await keys.revoke(id);
    await assertErrorAnswer(await asOperator(key), 401, 'invalid_api_key');
  });

  it('API keys over HTTP are shown in no answer but the one that makes them, and in no log', async () => {
    const { id, key } = await keys.create();
    const { id: nextId, key: next } = await keys.rotate(id);
    await statusOf(chat(key));
    await statusOf(chat(next));
    const answers = [
      JSON.stringify(await keys.answer(200, 'GET', '/accounts/default/keys?limit=200')),
      JSON.stringify(await keys.change(nextId, { name: 'again' })),
      JSON.stringify(await keys.revoke(nextId)),
      await (await chat(next)).text(),
      await (await keys.ask('POST', `/keys/${nextId}/rotate`, {})).text(),
    ];
    const last = await gateway.startApi({ LOG_LEVEL: 'trace' });
    await statusOf(chat(key, last.url));
    await last.stop();
    for (const text of [...answers, ...gateway.apis.map((api) => api.output())]) {
      for (const secret of [key, next, keys.operatorKey]) assert.equal(text.includes(secret.slice(16)), false);
    }
    assert.match(last.output(), /"endpoint":"chat"/);
  });
});
