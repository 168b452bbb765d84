import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it, mock } from 'node:test';
import { type RoutingSettings, routingDefaults } from '../../shared/config/routing-settings.ts';
import { ApiError } from '../../shared/errors.ts';
import { pauseName, RouteBreakers, type RouteState } from '../../workers/routing/route-breakers.ts';

const route = 'one/m';
const pauseMs = 1000;
/** Accounts. */
const [one, two] = ['one', 'two'];
const fine = () => Promise.resolve('fine');
const failure = new ApiError('server_error', 'no', { vendorStatus: 500 });
const left = new ApiError('cancelled', 'the caller has left');

/** A call whose end is in the test's hands. */
function pending(): { work: () => Promise<string>; answer: (text: string) => void; fail: (error: Error) => void } {
  let answer: (text: string) => void = () => undefined;
  let fail: (error: Error) => void = () => undefined;
  const end = new Promise<string>((resolve, reject) => {
    answer = resolve;
    fail = reject;
  });
  return { work: () => end, answer, fail };
}

describe('the breaker of a route', () => {
  let settings: RoutingSettings;
  let states: (RouteState | undefined)[];
  /** For whom it was paused, each time. */
  let paused: (string | null)[];
  let breakers: RouteBreakers;

  beforeEach(() => {
    mock.timers.enable({ apis: ['Date'], now: 1_000_000 });
    settings = { ...routingDefaults, breakerCalls: 4, breakerPauseMs: pauseMs };
    states = [];
    paused = [];
    breakers = new RouteBreakers(
      () => settings,
      (_route, state, owner) => {
        states.push(state);
        if (state === 'open') paused.push(owner);
      },
    );
  });

  afterEach(() => mock.timers.reset());

  const fails = async (times = 4, name = route, owner = one): Promise<void> => {
    for (let turn = 0; turn < times; turn++)
      await breakers.call(name, owner, () => Promise.reject(failure)).catch(() => undefined);
  };

  it('the breaker of a route lets one call of many try the route', async () => {
    await fails();
    mock.timers.tick(pauseMs);
    assert.equal(breakers.admits(route, one), true);
    const probe = pending();
    const probed = breakers.call(route, one, probe.work);
    assert.equal(breakers.admits(route, one), false);
    probe.answer('fine');
    assert.equal(await probed, 'fine');
    assert.equal(breakers.admits(route, one), true);
    assert.deepEqual(states, ['open', 'half-open', 'closed']);
  });

  it('the pause of a route is no longer because the clock of its host was put back', async () => {
    await fails();
    mock.timers.setTime(500_000);
    assert.equal(breakers.admits(route, one), false);
    mock.timers.tick(pauseMs);
    assert.equal(breakers.admits(route, one), true);
    await breakers.call(route, one, () => Promise.reject(failure)).catch(() => undefined);
    assert.equal(breakers.admits(route, one), false, 'a failed probe pauses it again');
    mock.timers.tick(pauseMs);
    await breakers.call(route, one, fine);
    assert.deepEqual([breakers.admits(route, one), states.at(-1)], [true, 'closed']);
  });

  it('learns nothing of a call whose caller has left', async () => {
    await fails();
    mock.timers.tick(pauseMs);
    await breakers.call(route, one, () => Promise.reject(left)).catch(() => undefined);
    assert.equal(breakers.admits(route, one), false, 'the route was not seen to answer');
    assert.equal(breakers.isDead(route, one), true);
    mock.timers.tick(pauseMs);
    assert.equal(breakers.admits(route, one), true);
    await breakers.call(route, one, fine);
    for (let turn = 0; turn < 20; turn++)
      await breakers.call(route, one, () => Promise.reject(left)).catch(() => undefined);
    assert.equal(breakers.admits(route, one), true, 'callers who leave are no failures');
  });

  it('learns nothing of a request that was refused before its vendor was called', async () => {
    await fails();
    mock.timers.tick(pauseMs);
    const local = new ApiError('invalid_request_error', 'a link that must not be fetched');
    await breakers.call(route, one, () => Promise.reject(local)).catch(() => undefined);
    assert.equal(breakers.admits(route, one), false, 'the route was not seen to answer');
    mock.timers.tick(pauseMs);
    const refused = new ApiError('invalid_request_error', 'no', { vendorStatus: 400 });
    await breakers.call(route, one, () => Promise.reject(refused)).catch(() => undefined);
    assert.deepEqual(states.at(-1), 'closed');
  });

  it('a route whose failures are all of one account is dead for that account alone', async () => {
    await fails();
    assert.deepEqual([breakers.isDead(route, one), breakers.isDead(route, two)], [true, false]);
    await fails(1, route, two);
    assert.equal(breakers.isDead(route, 'three'), true, 'another one has found it dead, too');
    mock.timers.tick(pauseMs);
    await fails(1, route, one);
    assert.deepEqual(
      [breakers.isDead(route, one), breakers.isDead(route, two)],
      [true, false],
      'it may be back for two',
    );
    await breakers.call(route, two, fine);
    assert.equal(breakers.isDead(route, one), false);
  });

  it('a route that fails for one account alone is paused for that account, as long as the calls of others are answered', async () => {
    settings = { ...settings, breakerCalls: 20 };
    for (let turn = 0; turn < 10; turn++) {
      await breakers.call(route, two, fine);
      await fails(1);
    }
    assert.deepEqual(
      [breakers.admits(route, one), breakers.admits(route, two), breakers.admits(route, 'three')],
      [false, true, true],
    );
    await breakers.call(route, two, fine);
    assert.equal(breakers.admits(route, one), false, 'the answers of others say nothing of its requests');
    assert.deepEqual(paused, [one]);
    await fails(5, route, 'three');
    assert.deepEqual(
      [breakers.admits(route, one), breakers.admits(route, two), breakers.admits(route, 'three')],
      [false, false, false],
    );
    assert.deepEqual(paused, [one, null], 'other workers are told, too');
    mock.timers.tick(pauseMs);
    await fails(1);
    assert.deepEqual(
      [breakers.admits(route, one), breakers.admits(route, two)],
      [false, true],
      'it may be back for two',
    );
    mock.timers.tick(pauseMs);
    await breakers.call(route, two, fine);
    assert.deepEqual([breakers.admits(route, one), states.at(-1)], [true, 'closed']);
  });

  it('a route that another worker has paused for one account is paused for it alone', () => {
    breakers.pauseElsewhere(new Map([[pauseName(route, one), pauseMs]]));
    assert.deepEqual([breakers.admits(route, one), breakers.admits(route, two)], [false, true]);
    breakers.pauseElsewhere(new Map([[pauseName(route, null), pauseMs]]));
    assert.deepEqual([breakers.admits(route, one), breakers.admits(route, two)], [false, false]);
  });

  it('the breaker of a route lets another call try the route where the first one is still at it after a further pause', async () => {
    await fails();
    mock.timers.tick(pauseMs);
    const slow = pending();
    const probed = breakers.call(route, one, slow.work);
    mock.timers.tick(pauseMs);
    assert.equal(breakers.admits(route, one), true);
    const second = pending();
    const tried = breakers.call(route, one, second.work);
    assert.equal(breakers.admits(route, one), false);
    second.answer('fine');
    await tried;
    assert.equal(breakers.admits(route, one), true);
    slow.fail(failure);
    await probed.catch(() => undefined);
    assert.equal(breakers.admits(route, one), true, 'what was asked before says nothing of now');
    assert.deepEqual(states, ['open', 'half-open', 'closed']);
  });

  it('the breaker of a route goes by the settings of now', async () => {
    await fails();
    settings = { ...settings, breakerCalls: 40, breakerPauseMs: 1 };
    assert.equal(breakers.admits(route, one), false);
    mock.timers.tick(pauseMs);
    await fails(19);
    assert.equal(breakers.admits(route, one), true, 'forty calls are looked at now');
    await fails(1);
    assert.equal(breakers.admits(route, one), false);
    mock.timers.tick(1);
    assert.equal(breakers.admits(route, one), true);
  });

  it('the breaker of a route opens at a threshold of 100 % when every call failed', async () => {
    settings = { ...settings, breakerThreshold: 1 };
    await breakers.call(route, one, fine);
    await fails(3);
    assert.equal(breakers.admits(route, one), true);
    await fails(1);
    assert.equal(breakers.admits(route, one), false);
  });

  it('the breaker of a route does not forget a route that is not well while there are others to forget', async () => {
    await fails();
    for (let index = 0; index < 5001; index++) await breakers.call(`one/${index}`, one, fine);
    assert.equal(breakers.admits(route, one), false);
    assert.deepEqual(states, ['open', undefined, undefined]);
  });
});
