import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { readServed, servedText, withCost } from '../../../../shared/jobs/job-state.ts';
import type { QueuedJob } from '../../../../shared/queue/queue.ts';
import { recordedUsage, videoSeconds } from '../../../../workers/usage/billed-quantities.ts';
import { chargeFor, chargeForInterrupted, chargeForLate } from '../../../../workers/usage/charge.ts';
import { madeUpModel } from '../../../support/routed-model.ts';

const row = madeUpModel({ id: 'm', capability: 'chat', prices: { input: 1000, output: 2000 } });
const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 };

describe('the charge of a job', () => {
  it('a job is charged for the usage that its vendor counted, at the prices of its route', () => {
    const counts = { input: 3, cached: 0, written: 0, writtenForHour: 0, audio: 0, pictures: 0, output: 2, images: 0 };
    const counted = { usage: JSON.stringify(usage), tokens: 5, counts, saved: 0 };
    assert.deepEqual(chargeFor(row, {}, { usage }), { ...counted, cost: 7 });
    assert.deepEqual(chargeFor(undefined, {}, { usage }), { ...counted, cost: undefined });
    const none = { usage: undefined, cost: undefined, tokens: undefined, counts: undefined, saved: 0 };
    assert.deepEqual(chargeForInterrupted(row, {}, { usage: null, tier: undefined }), none);
  });

  it('an interrupted completion of several prompts is charged by the length and the number of those that were sent', () => {
    const prices = { input: 1000, output: 1000, request: 500, above: [{ tokens: 3, input: 10_000, output: 10_000 }] };
    const job = { fee: { requests: 9 } };
    const chats = madeUpModel({ id: 'm', capability: 'chat', prices });
    const costs = (row: typeof chats, calls: readonly (typeof usage)[]) => {
      const tokens = 3 * calls.length;
      const sum = { prompt_tokens: tokens, completion_tokens: 2 * calls.length, total_tokens: 5 * calls.length };
      return chargeForInterrupted(row, job, { usage: sum, calls, tier: undefined }).cost;
    };
    assert.deepEqual([costs(chats, [usage, usage]), costs(chats, [])], [10 + 1000, 0]);
    // A vendor's own completion is one call.
    const own = madeUpModel({ id: 'm', capability: 'chat', prices, legacyCompletions: true });
    assert.equal(costs(own, [usage, usage]), 100 + 4500);
  });

  it('a token count costs nothing, where an unknown cost would be charged as what was held', () => {
    const job = { capability: 'chat', endpoint: 'messages.count_tokens' } as QueuedJob;
    const answer = { body: '{"input_tokens":3}', usage: null };
    assert.equal(chargeFor(row, job, answer).cost, 0);
    assert.equal(chargeFor(undefined, job, answer).cost, 0);
    assert.equal(chargeForLate(row, job, { isLeft: true, hasDelta: false }, answer).cost, 0);
  });

  it('a late answer costs nothing when its job failed before any output', () => {
    const job = { capability: 'chat', endpoint: 'chat' } as QueuedJob;
    const answer = { body: '{}', usage };
    const costs = (isLeft: boolean, hasDelta: boolean) => chargeForLate(row, job, { isLeft, hasDelta }, answer).cost;
    assert.deepEqual([costs(true, false), costs(false, true), costs(false, false)], [7, 7, 0]);
  });

  it('a late video or image costs nothing that its caller has not had: it is charged as if it had not come', () => {
    const byPiece = madeUpModel({ id: 'm', capability: 'video', prices: { second: 100, image: 100 } });
    const answer = { body: '{}', usage: null, quantities: { seconds: 4, images: 1 } };
    for (const [capability, endpoint] of [['video', 'videos'] as const, ['image', 'images.generations'] as const]) {
      const job = { capability, endpoint } as QueuedJob;
      for (const isLeft of [false, true]) {
        for (const hasDelta of [false, true]) {
          const { usage, cost } = chargeForLate(byPiece, job, { isLeft, hasDelta }, answer);
          assert.deepEqual([usage, cost], [undefined, 0], `${isLeft} ${capability}`);
        }
      }
    }
  });

  it('a charge contains the price of the request, also when the answer was interrupted or late, and is unknown when it is not counted', () => {
    const prices = { input: 1000, output: 2000, request: { low: 500, medium: 600, high: 700 } };
    const searching = madeUpModel({ id: 'm', capability: 'chat', prices });
    const job = { capability: 'chat', endpoint: 'chat', fee: { searchContext: 'high' } } as QueuedJob;
    assert.equal(chargeFor(searching, job, { usage }).cost, 707);
    assert.equal(chargeFor(searching, {}, { usage }).cost, 507);
    assert.equal(chargeFor(searching, job, { usage: { ...usage, search_context_size: 'low' } }).cost, 507);
    assert.equal(chargeForInterrupted(searching, job, { usage, tier: undefined }).cost, 707);
    const uncounted = { usage: undefined, cost: undefined, tokens: undefined, counts: undefined, saved: 0 };
    assert.deepEqual(chargeForInterrupted(searching, job, { usage: null, tier: undefined }), uncounted);
    const late = (isLeft: boolean) =>
      chargeForLate(searching, job, { isLeft, hasDelta: false }, { body: '{}', usage }).cost;
    assert.deepEqual([late(true), late(false)], [707, 0]);
  });

  it('a request for an hour of cache is charged for it, except at vendors that are not sent its marks', () => {
    const prices = { input: 1000, output: 2000, cacheWrite: 1250 };
    const answer = { usage: { ...usage, prompt_tokens: 1000, prompt_tokens_details: { cache_write_tokens: 1000 } } };
    const cost = (hints: boolean, fee: { hourCache?: true }) =>
      chargeFor(madeUpModel({ id: 'm', capability: 'chat', prices, chat: { hints, effort: true } }), { fee }, answer)
        .cost;
    assert.deepEqual([cost(true, {}), cost(true, { hourCache: true })], [1254, 2004]);
    assert.equal(cost(false, { hourCache: true }), 1254);
  });

  it('a charge is by the service tier that the vendor has used, which its usage names unless it is the standard one', () => {
    const tiers = { flex: 0.5, priority: { input: 1750, output: 4000 } };
    const tiered = madeUpModel({ id: 'm', capability: 'chat', prices: { input: 1000, output: 2000, tiers } });
    const charge = (asked: string | undefined, tier?: string) => {
      const { cost, usage: recorded = '' } = chargeFor(tiered, { fee: { tier: asked } }, { usage, tier });
      return [cost, JSON.parse(recorded).service_tier];
    };
    assert.deepEqual(charge(undefined), [7, undefined]);
    assert.deepEqual([charge(undefined, 'default'), charge(undefined, 'on_demand')], Array(2).fill([7, undefined]));
    assert.deepEqual(charge(undefined, 'priority'), [14, 'priority'], 'a setting of its account there');
    assert.deepEqual(
      [charge('flex', 'flex'), charge('priority', 'priority')],
      [
        [4, 'flex'],
        [14, 'priority'],
      ],
    );
    assert.deepEqual([charge('priority', 'default'), charge('flex', 'default')], Array(2).fill([7, 'default']));
    assert.deepEqual(
      [charge('auto', 'default'), charge('auto', 'flex')],
      [
        [7, 'default'],
        [4, 'flex'],
      ],
    );
    // Nothing is said, or what has no price.
    assert.deepEqual(
      [charge('priority'), charge('auto'), charge('flex')],
      [
        [14, 'priority'],
        [14, 'priority'],
        [7, 'default'],
      ],
    );
    assert.deepEqual(
      [charge('priority', 'gold'), charge('flex', 'gold'), charge(undefined, 'gold')],
      [
        [14, 'gold'],
        [7, 'gold'],
        [7, 'gold'],
      ],
    );
    const cut = (asked: string | undefined, tier?: string) =>
      chargeForInterrupted(tiered, { fee: { tier: asked } }, { usage, tier }).cost;
    assert.deepEqual([cut('priority', 'default'), cut('priority'), cut('flex'), cut('flex', 'flex')], [14, 14, 7, 4]);
    assert.deepEqual([cut(undefined), cut(undefined, 'priority'), cut(undefined, 'flex')], [7, 14, 7]);
    const saved = { ...usage, prompt_tokens_details: { cached_tokens: 2 } };
    const caching = madeUpModel({
      ...{ id: 'm', capability: 'chat' },
      prices: { input: 1_000_000, cachedInput: 100_000, output: 1, tiers: { priority: 2 } },
    });
    assert.deepEqual(
      ['default', 'priority'].map((tier) => chargeFor(caching, {}, { usage: saved, tier }).saved),
      [1800, 3600],
    );
  });

  it('recordedUsage adds quantities when a price is for them or nothing else is known', () => {
    assert.deepEqual(recordedUsage(null, { seconds: 8 }, undefined), { seconds: 8 });
    assert.deepEqual(recordedUsage(usage, { images: 2 }, { image: 1 }), { ...usage, images: 2 });
    assert.equal(recordedUsage(usage, { images: 2 }, { output: 1 }), usage);
    assert.equal(recordedUsage(null, {}, undefined), null);
  });

  it("videoSeconds returns the produced length, else the requested one, else the model's default", async () => {
    const traits = { sizes: ['1280x720'], seconds: ['4'], input: true, remix: false };
    const model = madeUpModel({ id: 'v', capability: 'video', video: traits });
    const asked = async (): Promise<string> => '{"seconds":"8"}';
    const silent = async (): Promise<string> => '{}';
    assert.equal(await videoSeconds('12', model, () => assert.fail('the request is not needed')), 12);
    assert.equal(await videoSeconds(undefined, model, asked), 8);
    for (const none of ['', ' ', '0', 'long', '-4', 'Infinity', '1e999'])
      assert.equal(await videoSeconds(none, model, asked), 8, none);
    assert.equal(await videoSeconds(undefined, model, silent), 4);
    assert.equal(await videoSeconds(undefined, undefined, silent), undefined);
  });
});

describe('servedText and readServed', () => {
  it('readServed reads back servedText with a fallback model and a cost, and older texts', () => {
    const plain = { vendor: 'a vendor', calls: 2, model: undefined, cost: undefined };
    const known = [plain, { ...plain, model: 'maker/m 1' }, { ...plain, cost: 0 }, { ...plain, model: 'm', cost: 12 }];
    const all = [...known, ...known.map((served) => ({ ...served, routeModel: 'its own' }))];
    for (const served of all) {
      const text = servedText(served);
      assert.ok(!text.includes('\n'));
      assert.deepEqual(readServed(text), served);
    }
    assert.deepEqual(readServed('openai 1 m'), { vendor: 'openai', calls: 1, model: 'm', cost: undefined });
    assert.deepEqual(readServed(withCost('openai 1', 5)), { vendor: 'openai', calls: 1, model: undefined, cost: 5 });
    const routed = { ...plain, model: 'm', routeModel: 'its own' };
    assert.deepEqual(readServed(withCost(servedText(routed), 5)), { ...routed, cost: 5 });
    assert.equal(withCost('openai 1', undefined), 'openai 1');
    assert.equal(withCost('', 5), '');
  });
});
