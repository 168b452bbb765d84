import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { loadProduct } from '../../../support/gateway.ts';
import { SeededRandom } from '../../../support/seeded-random.ts';

type SlotOffer = import('../../../../workers/queue/claim-slots.ts').SlotOffer;
const { ClaimSlots } =
  await loadProduct<typeof import('../../../../workers/queue/claim-slots.ts')>('workers/queue/claim-slots');

describe('slots of a worker', () => {
  it('a tenth of the slots, one at least, is not offered to jobs of low priority', () => {
    for (const [size, spare] of [
      [1, 1],
      [2, 1],
      [10, 9],
      [25, 22],
    ] as const) {
      assert.deepEqual(new ClaimSlots(size).offer(100), { count: size, spare }, String(size));
    }
  });

  it('the slot of a job that ends is offered to jobs of low priority while a claim waits with the slot that is kept', () => {
    const slots = new ClaimSlots(2);
    slots.settle(slots.offer(2), 1);
    assert.deepEqual(slots.offer(2), { count: 1, spare: 0 });
    slots.give(1);
    assert.deepEqual(slots.offer(2), { count: 1, spare: 1 });
  });

  it('two claims under way are not both offered the same spare slot', () => {
    const slots = new ClaimSlots(4);
    assert.deepEqual(slots.offer(3), { count: 3, spare: 3 });
    assert.deepEqual(slots.offer(3), { count: 1, spare: 0 });
  });

  it('whatever claims are answered in whatever order, jobs of low priority never have the slots that are kept', () => {
    const random = new SeededRandom(7);
    for (let round = 0; round < 300; round++) {
      const size = random.int(2, 30);
      const kept = Math.ceil(size / 10);
      const slots = new ClaimSlots(size);
      const offers: SlotOffer[] = [];
      const running = { low: 0, other: 0 };
      for (let step = 0; step < 60; step++) {
        const kind = random.int(0, 2);
        if (kind === 0) offers.push(slots.offer(random.int(0, size)));
        else if (kind === 1 && offers.length > 0) {
          const [offer] = offers.splice(random.int(0, offers.length - 1), 1) as [SlotOffer];
          const low = random.int(0, offer.spare);
          const other = random.int(0, offer.count - low);
          running.low += low;
          running.other += other;
          slots.settle(offer, low + other);
        } else if (running.low > 0) {
          running.low--;
          slots.give(1);
        } else if (running.other > 0) {
          running.other--;
          slots.give(1);
        }
        assert.ok(running.low <= size - kept, `${running.low} of ${size}`);
        assert.ok(slots.size - slots.free >= running.low + running.other);
      }
    }
  });

  it('an account is dominant if it has more than half of the slots, of those of all shards together', () => {
    const dominant = (size: number, ...shards: (string | undefined)[][]): string | undefined => {
      const slots = new ClaimSlots(size);
      for (const accounts of shards) slots.claims.add(accounts.map((account) => ({ account })));
      return slots.dominant();
    };
    assert.equal(dominant(3, ['a', 'b', 'a']), 'a');
    assert.equal(dominant(5, ['b', 'a'], ['c', 'a'], ['a']), 'a');
    // All of one shard, and a third of the slots.
    assert.equal(dominant(6, ['a', 'a'], ['b', 'c'], ['b', 'c']), undefined);
    for (const none of [[], ['a', 'b'], [undefined, undefined, 'a']])
      assert.equal(dominant(none.length, none), undefined);
  });

  it('a tenth of the slots is there beside them, none of fewer than ten, and each of these is offered once', () => {
    for (const [size, extra] of [
      [1, 0],
      [9, 0],
      [10, 1],
      [25, 2],
    ] as const) {
      const slots = new ClaimSlots(size);
      assert.equal(slots.offerExtra(), extra, String(size));
      assert.equal(slots.offerExtra(), 0);
      slots.giveExtra(extra);
      assert.equal(slots.offerExtra(), extra);
    }
  });
});
