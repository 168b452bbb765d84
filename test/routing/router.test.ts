import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { ModelRoute } from '../../shared/catalogue/models.ts';
import type { RoutingSettings } from '../../shared/config/routing-settings.ts';
import { ApiError } from '../../shared/errors.ts';
import { beginStream, type FixtureVendor, sendJson, sendStream } from '../vendors/contracts/fixture-vendor.ts';
import { completion, errorBody, events, usage } from '../vendors/recorded/recorded-openai.ts';
import { chatModel, ScriptedRoutes, startServers } from './scripted-routes.ts';

const fine = JSON.stringify({
  ...completion,
  choices: [{ index: 0, message: { role: 'assistant', content: 'fine' }, logprobs: null, finish_reason: 'stop' }],
  usage,
});
const said = { choices: [{ index: 0, delta: { content: 'fine' }, finish_reason: 'stop' }] };

describe('the routes of a job', () => {
  let servers: FixtureVendor[];
  let scripted: ScriptedRoutes | undefined;

  beforeEach(async () => {
    servers = await startServers(3);
  });

  afterEach(async () => {
    await scripted?.close();
    await Promise.all(servers.map((server) => server.close()));
  });

  /** Routes `one/m`, `two/m` and `three/m`, as many as are given, over the servers in that order. */
  function open(
    routes: readonly Partial<ModelRoute>[],
    { settings, keys }: { settings?: Partial<RoutingSettings>; keys?: readonly string[] } = {},
  ): ScriptedRoutes {
    const names = ['one', 'two', 'three'];
    const vendors = Object.fromEntries(
      names.map((name, index) => [
        name,
        { server: servers[index] as FixtureVendor, ...(index === 0 && keys && { keys }) },
      ]),
    );
    const model = chatModel(routes.map((route, index) => ({ vendor: names[index] as string, model: 'm', ...route })));
    scripted = new ScriptedRoutes(vendors, [model], settings);
    return scripted;
  }

  const answers = (index: number, ...statuses: number[]): void => {
    let turn = 0;
    (servers[index] as FixtureVendor).answer((response) => {
      const status = statuses[Math.min(turn++, statuses.length - 1)] as number;
      sendJson(response, status, status === 200 ? fine : errorBody('no', 'code'));
    });
  };

  const failsWith = async (answer: Promise<unknown>, status: number): Promise<ApiError> => {
    const error = await answer.then(
      () => assert.fail('it was answered'),
      (thrown) => thrown,
    );
    assert.ok(error instanceof ApiError);
    assert.equal(error.status, status, error.message);
    return error;
  };

  it('the routes of a job are asked in their order, the next at once when one fails', async () => {
    for (const status of [408, 429, 500, 502, 503, 504, 529]) {
      // One that waits does so every time; a busy machine is late now and then.
      const tookMs: number[] = [];
      while (tookMs.length < 5 && Math.min(...tookMs) >= 240) {
        answers(0, status);
        answers(1, 200);
        const { answer, calls } = open([{}, {}]).run();
        const startedAt = Date.now();
        assert.match((await answer).body, /fine/);
        tookMs.push(Date.now() - startedAt);
        assert.deepEqual(calls, ['one/m', 'two/m'], String(status));
        await scripted?.close();
      }
      assert.ok(Math.min(...tookMs) < 240, `after ${status} it waited: ${tookMs} ms`);
    }
  });

  it('the routes of a job are not asked again for what the caller has to mend', async () => {
    for (const status of [400, 413, 422]) {
      answers(0, status);
      answers(1, 200);
      const { answer, calls } = open([{}, {}]).run();
      await failsWith(answer, 400);
      assert.deepEqual(calls, ['one/m']);
      await scripted?.close();
    }
  });

  it('the routes of a job are left for the next where the vendor takes the key no more, or lacks the model', async () => {
    for (const status of [401, 402, 403, 404]) {
      answers(0, status);
      answers(1, 200);
      const { answer, calls } = open([{}, {}]).run();
      await answer;
      assert.deepEqual(calls, ['one/m', 'two/m']);
      await scripted?.close();
    }
    answers(0, 401);
    const { answer, calls } = open([{}]).run();
    await failsWith(answer, 503);
    assert.deepEqual(calls, ['one/m'], 'asking again with the same key is of no use');
  });

  it('the routes of a job are left for the next key and route where an account has no credit, whichever status says so', async () => {
    const cases: [number, string][] = [
      [400, 'billing_hard_limit_reached'],
      [400, 'Arrearage'],
      [412, 'account_suspended'],
    ];
    for (const [status, code] of cases) {
      servers[0]?.answer((response) => sendJson(response, status, errorBody('no', code)));
      answers(1, 200);
      const { answer, calls } = open([{}, {}], { keys: ['first-key', 'second-key'] }).run();
      await answer;
      assert.deepEqual(calls, ['one/m', 'one/m', 'two/m'], code);
      await scripted?.close();
    }
  });

  it('the routes of a job report a key whose account has no credit as refused, until the vendor accepts it again', async () => {
    const refused = async (routes: ScriptedRoutes) =>
      (await routes.registry.getSingleMetricAsString('sluice_vendor_keys_refused')).match(
        /vendor="one"[^}]*\} (\d)/,
      )?.[1];
    const cases: [number, string][] = [
      [402, 'payment_required'],
      [429, 'insufficient_quota'],
      [400, 'billing_hard_limit_reached'],
    ];
    for (const [status, code] of cases) {
      servers[0]?.answer((response) => sendJson(response, status, errorBody('no', code)));
      const routes = open([{}]);
      await failsWith(routes.run().answer, 503);
      assert.equal(await refused(routes), '1', code);
      answers(0, 200);
      await routes.run().answer;
      assert.equal(await refused(routes), '0', code);
      await scripted?.close();
    }
  });

  it('the routes of a job keep a key whose credit is short of one large request alone, and the next one serves that', async () => {
    const short =
      'This request requires more credits, or fewer max_tokens. You requested up to 64000 tokens, but can only afford 9230.';
    const cases: [message: string, isWarm: boolean, param: string | null][] = [
      [`${short} To increase, visit https://openrouter.ai/settings/credits`, true, 'max_tokens'],
      ['Prompt tokens limit exceeded: 230799 > 91442. To increase, visit …', true, 'messages'],
      [short.replace('9230', '0'), false, null],
      ['Insufficient credits.', false, null],
    ];
    for (const [message, isWarm, param] of cases) {
      servers[0]?.answer((response) => sendJson(response, 402, JSON.stringify({ error: { message, code: 402 } })));
      answers(1, 200);
      const routes = open([{}, {}], { keys: ['first-key', 'second-key'] });
      const { answer, calls } = routes.run();
      await answer;
      assert.deepEqual(calls, ['one/m', 'one/m', 'two/m']);
      assert.equal(routes.pool.isWarm('one', 'm'), isWarm, message);
      await scripted?.close();
      const error = await failsWith(open([{}]).run().answer, 503);
      assert.equal(error.param, param);
      assert.doesNotMatch(error.message, /credit|afford|openrouter/);
      await scripted?.close();
    }
  });

  it('the routes of a job are left for the next where the vendor does not do its work for another reason than the request', async () => {
    for (const status of [301, 307, 405, 409, 424, 425, 451]) {
      answers(0, status);
      answers(1, 200);
      const { answer, calls } = open([{}, {}]).run();
      await answer;
      assert.deepEqual(calls, ['one/m', 'two/m'], String(status));
      await scripted?.close();
      const once = open([{}, {}]).run({ repeatable: false });
      await once.answer.catch(() => undefined);
      assert.deepEqual(once.calls, ['one/m'], `${status}, of work that must not be done twice`);
      await scripted?.close();
    }
  });

  it('the routes of a job are asked again where a tier or an engine is full, which is held against neither key nor route', async () => {
    const cases: [number, string][] = [
      [498, 'capacity_exceeded'],
      [429, 'engine_overloaded_error'],
      [429, 'resource_unavailable'],
    ];
    for (const [status, code] of cases) {
      let turn = 0;
      servers[0]?.answer((response) =>
        turn++ === 0 ? sendJson(response, status, errorBody('full', code)) : sendJson(response, 200, fine),
      );
      const routes = open([{}]);
      const { answer, calls } = routes.run({ repeatable: false });
      await answer;
      assert.deepEqual(calls, ['one/m', 'one/m'], code);
      assert.equal(routes.pool.isWarm('one', 'm'), true);
      await scripted?.close();
    }
  });

  it('the routes of a job are left for the next where a request alone exceeds the limit of the account, whose key stays as it was', async () => {
    const message = 'Request too large for m in organization o on tokens per min (TPM): Limit 30000, Requested 41022.';
    servers[0]?.answer((response) => sendJson(response, 429, errorBody(message, 'rate_limit_exceeded', 'tokens')));
    answers(1, 200);
    const routes = open([{}, {}]);
    const { answer, calls } = routes.run({ repeatable: false });
    await answer;
    assert.deepEqual(calls, ['one/m', 'two/m']);
    assert.deepEqual([routes.pool.isWarm('one', 'm'), routes.pool.isLimited('one', 'm')], [true, false]);
    await scripted?.close();
    const alone = open([{}]).run();
    await failsWith(alone.answer, 413);
    assert.deepEqual(alone.calls, ['one/m'], 'it is not repeated');
  });

  it('the routes of a job are asked again after a pause where there is no other, up to the attempts that are allowed', async () => {
    answers(0, 500, 500, 200);
    const { answer, calls } = open([{}]).run();
    await answer;
    assert.equal(calls.length, 3);
    await scripted?.close();
    answers(0, 500);
    const bounded = open([{}], { settings: { attempts: 2 } }).run();
    await failsWith(bounded.answer, 500);
    assert.equal(bounded.calls.length, 2);
  });

  it('the routes of a job are left when their connection cannot be made, is reset, or says nothing', async () => {
    answers(1, 200);
    const [server] = servers as [FixtureVendor];
    server.answer((response) => response.socket?.resetAndDestroy());
    const reset = open([{}, {}]).run();
    assert.match((await reset.answer).body, /fine/);
    await scripted?.close();
    server.answer(() => undefined);
    const silent = open([{ idleMs: 300 }, {}]).run();
    assert.match((await silent.answer).body, /fine/);
    await scripted?.close();
    await server.close();
    const closed = open([{}, {}]).run();
    assert.match((await closed.answer).body, /fine/);
    assert.deepEqual([reset.calls, silent.calls, closed.calls], Array(3).fill(['one/m', 'two/m']));
    servers.shift();
  });

  it('the routes of a job are not asked a second time for work that must not be done twice, once its answer was lost', async () => {
    answers(1, 200);
    const [server] = servers as [FixtureVendor];
    server.answer((response) => response.socket?.resetAndDestroy());
    const { answer, calls } = open([{}, {}]).run({ repeatable: false });
    await failsWith(answer, 500);
    assert.deepEqual(calls, ['one/m']);
    for (const [status, count] of [
      [408, 1],
      [502, 1],
      [504, 1],
      [429, 2],
      [500, 1],
      [503, 2],
      [529, 2],
    ] as const) {
      await scripted?.close();
      answers(0, status);
      const run = open([{}, {}]).run({ repeatable: false });
      await run.answer.catch(() => undefined);
      assert.equal(run.calls.length, count, String(status));
    }
  });

  it('the routes of a job are not changed once a frame is out', async () => {
    answers(1, 200);
    (servers[0] as FixtureVendor).answer((response) => {
      beginStream(response);
      response.write(events([{ choices: [{ index: 0, delta: { content: 'half' }, finish_reason: null }] }], ''));
      setTimeout(() => response.socket?.resetAndDestroy(), 50);
    });
    const { answer, calls, frames } = open([{}, {}]).run({ stream: true });
    await failsWith(answer, 500);
    assert.deepEqual(calls, ['one/m']);
    assert.equal(frames.length, 1);
  });

  it('the routes of a job have a time to their first byte, after which the next stream is begun and nothing of the first gets in', async () => {
    let late: (() => void) | undefined;
    (servers[0] as FixtureVendor).answer((response) => {
      beginStream(response);
      late = () => response.write(events([said], ''));
    });
    (servers[1] as FixtureVendor).answer((response) => {
      late?.();
      sendStream(response, [events([said], '[DONE]')]);
    });
    const { answer, calls, frames } = open([{ firstByteMs: 200 }, {}]).run({ stream: true });
    await answer;
    assert.deepEqual(calls, ['one/m', 'two/m']);
    assert.equal(frames.length, 1);
  });

  it('the routes of a job are not asked before their Retry-After is over, nor where that is too far away', async () => {
    let turn = 0;
    const times: number[] = [];
    const [server] = servers as [FixtureVendor];
    server.answer((response) => {
      times.push(Date.now());
      if (turn++ === 0) sendJson(response, 429, errorBody('slow', 'rate_limit_exceeded'), { 'retry-after-ms': '700' });
      else sendJson(response, 200, fine);
    });
    await open([{}]).run().answer;
    assert.ok((times[1] as number) - (times[0] as number) >= 690);
    await scripted?.close();
    times.length = 0;
    turn = 0;
    server.answer((response) => {
      times.push(Date.now());
      if (turn++ === 0) sendJson(response, 502, '<html>', { 'retry-after': '1' });
      else sendJson(response, 200, fine);
    });
    await open([{}]).run().answer;
    assert.ok((times[1] as number) - (times[0] as number) >= 990, 'after a 502');
    await scripted?.close();
    server.answer((response) =>
      sendJson(response, 429, errorBody('slow', 'rate_limit_exceeded'), { 'retry-after': '11' }),
    );
    const far = open([{}]).run();
    const error = await failsWith(far.answer, 429);
    assert.equal(error.retryAfterMs, 11_000);
    assert.equal(far.calls.length, 1);
  });

  it('the routes of a job are not asked again past the deadline, nor when the caller has left', async () => {
    answers(0, 500);
    const soon = open([{}]).run({ deadlineMs: 100 });
    await failsWith(soon.answer, 500);
    assert.equal(soon.calls.length, 1);
    await scripted?.close();
    const leaving = new AbortController();
    (servers[0] as FixtureVendor).answer((response) => {
      sendJson(response, 503, errorBody('no', 'overloaded'));
      setTimeout(() => leaving.abort(new ApiError('cancelled', 'left')), 50);
    });
    const left = open([{}]).run({ signal: leaving.signal });
    await failsWith(left.answer, 499);
    assert.equal(left.calls.length, 1);
  });

  it('share the calls of one order by their weights', () => {
    const drawn = open([{ order: 0, weight: 3 }, { order: 0, weight: 1 }, { order: 1 }]);
    for (const [index] of servers.entries()) answers(index, 200);
    const runs = Array.from({ length: 400 }, () => drawn.run());
    return Promise.all(runs.map(({ answer }) => answer)).then(() => {
      const share = runs.filter(({ calls }) => calls[0] === 'one/m').length / runs.length;
      assert.ok(share > 0.66 && share < 0.84, String(share));
      assert.ok(runs.every(({ calls }) => calls[0] !== 'three/m'));
    });
  });

  it('the routes of a job use each key of a vendor in turn, and leave one that is limited or refused to the others', async () => {
    const used: string[] = [];
    (servers[0] as FixtureVendor).answer((response, { headers }) => {
      const key = String(headers.authorization).slice('Bearer key-'.length);
      used.push(key);
      if (key === 'limited') sendJson(response, 429, errorBody('slow', 'rate_limit_exceeded'), { 'retry-after': '60' });
      else if (key === 'revoked') sendJson(response, 401, errorBody('no', 'invalid_api_key'));
      else sendJson(response, 200, fine);
    });
    const keyed = open([{}], { keys: ['key-good', 'key-limited', 'key-revoked', 'key-better'] });
    for (let index = 0; index < 8; index++) await keyed.run().answer;
    assert.equal(used.filter((key) => key === 'limited').length, 1);
    assert.equal(used.filter((key) => key === 'revoked').length, 1);
    assert.equal(used.length, 10);
    assert.match(await keyed.registry.metrics(), /sluice_vendor_keys_cooling\{[^}]*vendor="one"[^}]*\} 2/);
  });

  it('the routes of a job are asked with each key that is well, whatever was tried before', async () => {
    const used: string[] = [];
    (servers[0] as FixtureVendor).answer((response, { headers }) => {
      const key = String(headers.authorization).slice('Bearer key-'.length);
      used.push(key);
      if (key === 'shaken' && used.length === 1) sendJson(response, 500, errorBody('no', 'server_error'));
      else if (key === 'revoked') sendJson(response, 401, errorBody('no', 'invalid_api_key'));
      else sendJson(response, 200, fine);
    });
    await open([{}], { keys: ['key-shaken', 'key-revoked'] }).run().answer;
    assert.deepEqual(used, ['shaken', 'revoked', 'shaken']);
    await scripted?.close();
    used.length = 0;
    (servers[0] as FixtureVendor).answer((response, { headers }) => {
      used.push(String(headers.authorization).slice('Bearer key-'.length));
      const isThird = used.at(-1) === 'third';
      const limits = { 'retry-after-ms': '0' };
      if (isThird) sendJson(response, 200, fine);
      else sendJson(response, 429, errorBody('slow', 'rate_limit_exceeded'), limits);
    });
    await open([{}], { keys: ['key-first', 'key-second', 'key-third'] }).run().answer;
    assert.deepEqual(used, ['first', 'second', 'third']);
  });

  it('the routes of a job lose a key that lacks the right to a model for that model alone', async () => {
    const used: string[] = [];
    (servers[0] as FixtureVendor).answer((response, { headers, body }) => {
      const key = String(headers.authorization).slice('Bearer key-'.length);
      used.push(key);
      const isAllowed = key === 'wide' || (JSON.parse(body) as { model: string }).model === 'open';
      sendJson(response, isAllowed ? 200 : 403, isAllowed ? fine : errorBody('no', 'permission_denied'));
    });
    const [one] = servers as [FixtureVendor];
    const models = ['open', 'closed'].map((model) => chatModel([{ vendor: 'one', model }], { id: model }));
    scripted = new ScriptedRoutes({ one: { server: one, keys: ['key-narrow', 'key-wide'] } }, models);
    for (let turn = 0; turn < 3; turn++) await scripted.run({ model: 'closed' }).answer;
    assert.equal(used.filter((key) => key === 'narrow').length, 1);
    used.length = 0;
    for (let turn = 0; turn < 4; turn++) await scripted.run({ model: 'open' }).answer;
    assert.equal(used.filter((key) => key === 'narrow').length, 2);
  });

  it('the routes of a job that lead to a vendor which a reload has taken out are passed over', async () => {
    answers(0, 503);
    answers(2, 200);
    const reloaded = open([{}, {}, {}]);
    const { one, three } = { one: reloaded.settingsOf('one'), three: reloaded.settingsOf('three') };
    const routes = reloaded.routes('model');
    reloaded.pool.replace({ one, three });
    const { answer, calls } = reloaded.run({ routes });
    await answer;
    assert.deepEqual(calls, ['one/m', 'three/m']);
    reloaded.pool.replace({ three });
    const later = reloaded.run({ routes });
    await later.answer;
    assert.deepEqual(later.calls, ['three/m']);
  });

  it('the routes of a job are called with the key that a reload has brought, where the vendor refuses the one it has replaced', async () => {
    const [one] = servers as [FixtureVendor];
    let refuse: (() => void) | undefined;
    one.answer((response, { headers }) => {
      if (headers.authorization === 'Bearer new-key') sendJson(response, 200, fine);
      else refuse = () => sendJson(response, 401, errorBody('no', 'invalid_api_key'));
    });
    const rotated = open([{}], { keys: ['old-key'] });
    const { answer, calls } = rotated.run();
    while (refuse === undefined) await new Promise((resolve) => setImmediate(resolve));
    rotated.pool.replace({ one: { ...rotated.settingsOf('one'), apiKeys: ['new-key'] } });
    refuse();
    await answer;
    assert.deepEqual(calls, ['one/m', 'one/m']);
  });

  it('the routes of a job are left alone when they fail too often, are tried by one call after a while, and come back', async () => {
    const settings = { breakerCalls: 4, breakerPauseMs: 400 };
    const guarded = open([{}, {}], { settings });
    answers(0, 500);
    answers(1, 200);
    for (let index = 0; index < 4; index++) await guarded.run().answer;
    const [first] = servers as [FixtureVendor];
    const before = first.requests.length;
    for (let index = 0; index < 5; index++) assert.deepEqual((await done(guarded.run())).calls, ['two/m']);
    assert.equal(first.requests.length, before);
    assert.match(await guarded.registry.metrics(), /sluice_route_breaker_open\{[^}]*route="one\/m"[^}]*\} 1\n/);
    answers(0, 200);
    await new Promise((resolve) => setTimeout(resolve, settings.breakerPauseMs + 20));
    assert.deepEqual((await done(guarded.run())).calls, ['one/m']);
    assert.match(await guarded.registry.metrics(), /sluice_route_breaker_open\{[^}]*route="one\/m"[^}]*\} 0\n/);
  });

  it('the routes of a job that are the last there is are still asked while they answer now and then, and spared when they are dead', async () => {
    const settings = { breakerCalls: 4, breakerPauseMs: 60_000, attempts: 1 };
    const alone = open([{}], { settings });
    answers(0, 500, 500, 500, 200, 500, 500, 500, 200);
    const outcomes: number[] = [];
    for (let index = 0; index < 8; index++) {
      outcomes.push(
        await alone.run().answer.then(
          () => 200,
          (error: ApiError) => error.status,
        ),
      );
    }
    assert.deepEqual(outcomes, [500, 500, 500, 200, 500, 500, 500, 200]);
    answers(0, 500);
    for (let index = 0; index < 4; index++) await failsWith(alone.run().answer, 500);
    const spared = alone.run();
    const error = await failsWith(spared.answer, 503);
    assert.deepEqual(spared.calls, []);
    assert.ok((error.retryAfterMs ?? 0) > 1000);
  });

  it('the routes of a job are asked again within a budget only', async () => {
    answers(0, 500);
    const settings = { attempts: 2, breakerCalls: 10_000 };
    const stormy = open([{}], { settings });
    const runs = Array.from({ length: 100 }, () => stormy.run());
    await Promise.all(runs.map(({ answer }) => answer.catch(() => undefined)));
    const repeats = runs.reduce((sum, { calls }) => sum + calls.length - 1, 0);
    assert.ok(repeats >= 10 && repeats <= 21, `${repeats} repeats of 100 calls`);
    assert.match(await stormy.registry.metrics(), /sluice_vendor_retries_total\{[^}]*reason="over_budget"[^}]*\}/);
  });

  it('the routes of a job end with those of the models that stand in', async () => {
    const standIn = chatModel([{ vendor: 'two', model: 'other' }], { id: 'stand-in' });
    const model = chatModel([{ vendor: 'one', model: 'm' }], { fallbacks: ['stand-in', 'unknown'] });
    const [one, two] = servers as [FixtureVendor, FixtureVendor];
    scripted = new ScriptedRoutes({ one: { server: one }, two: { server: two } }, [model, standIn]);
    answers(0, 503);
    answers(1, 200);
    const { answer, calls } = scripted.run();
    await answer;
    assert.deepEqual(calls, ['one/m', 'two/other']);
  });

  it('the routes of a job take other vendors from one call to the next, while what runs goes on', async () => {
    const [one, two] = servers as [FixtureVendor, FixtureVendor];
    let finish: (() => void) | undefined;
    one.answer((response) => {
      beginStream(response);
      response.write(events([said], ''));
      finish = () => response.end('data: [DONE]\n\n');
    });
    const reloaded = open([{}]);
    const running = reloaded.run({ stream: true });
    while (running.frames.length === 0) await new Promise((resolve) => setImmediate(resolve));
    const settings = reloaded.settingsOf('one');
    reloaded.pool.replace({ one: { ...settings, baseUrl: two.baseUrl } });
    answers(1, 200);
    await reloaded.run().answer;
    finish?.();
    await running.answer;
    assert.deepEqual([one.requests.length, two.requests.length], [1, 1]);
  });
});

async function done<Run extends { readonly answer: Promise<unknown> }>(run: Run): Promise<Run> {
  await run.answer;
  return run;
}
