import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { JobIdMap, type JobItem, SwapRemoveSet } from '../../../../shared/runtime/collections.ts';

interface Item extends JobItem<Item> {
  readonly name: number;
  index: number;
}

const steps = fc.array(fc.tuple(fc.boolean(), fc.nat(30)), { maxLength: 200 });

/** Thirty-one items of ten jobs: three share each of three lists, and one has its own. */
function makeItems(): Item[] {
  const ids = ['00000', '10000', '20000', '00abc', '10abc', '20abc', '00fff', '10fff', '20fff', 'not hexadecimal'];
  return Array.from({ length: 31 }, (_, name) => ({
    ...{ name, index: 0, next: undefined },
    jobId: ids[name % ids.length] as string,
  }));
}

/** Puts items in and takes them out, as a Set would; none is put in twice. */
function follow(
  collection: Pick<SwapRemoveSet<Item>, 'add' | 'delete'>,
  items: Item[],
  steps: [boolean, number][],
): Set<Item> {
  const expected = new Set<Item>();
  for (const [isAdded, index] of steps) {
    const item = items[index] as Item;
    if (isAdded && expected.has(item)) continue;
    if (isAdded) collection.add(item);
    else collection.delete(item);
    if (isAdded) expected.add(item);
    else expected.delete(item);
  }
  return expected;
}

const names = (items: Iterable<Item>): number[] => [...items].map(({ name }) => name).sort((one, other) => one - other);

describe('SwapRemoveSet', () => {
  test('SwapRemoveSet contains what was added and not deleted', () => {
    fc.assert(
      fc.property(steps, (steps) => {
        const crowd = new SwapRemoveSet<Item>();
        const expected = follow(crowd, makeItems(), steps);
        assert.equal(crowd.size, expected.size);
        assert.deepEqual(names(crowd), names(expected));
      }),
    );
  });

  test('SwapRemoveSet iterates over its items as they were, whatever is deleted meanwhile', () => {
    const [crowd, items] = [new SwapRemoveSet<Item>(), makeItems()];
    for (const item of items) crowd.add(item);
    const met: Item[] = [];
    for (const item of crowd) {
      met.push(item);
      for (const other of items) crowd.delete(other);
    }
    assert.deepEqual(names(met), names(items));
    assert.equal(crowd.size, 0);
  });
});

describe('JobIdMap', () => {
  test('JobIdMap finds all items of a job by its id', () => {
    fc.assert(
      fc.property(steps, (steps) => {
        const [byJob, items] = [new JobIdMap<Item>(), makeItems()];
        const expected = follow(byJob, items, steps);
        assert.equal(byJob.size, expected.size);
        assert.deepEqual(names(byJob), names(expected));
        for (const { jobId } of items) {
          const found: Item[] = [];
          byJob.forEach(jobId, (item) => found.push(item));
          assert.deepEqual(names(found), names([...expected].filter((item) => item.jobId === jobId)));
        }
      }),
    );
  });

  test('JobIdMap lets an item delete itself during forEach', () => {
    const [byJob, items] = [new JobIdMap<Item>(), makeItems()];
    for (const item of items) byJob.add(item);
    const met: Item[] = [];
    byJob.forEach('00abc', (item) => {
      met.push(item);
      byJob.delete(item);
    });
    assert.deepEqual(names(met), names(items.filter(({ jobId }) => jobId === '00abc')));
    assert.equal(byJob.size, items.length - met.length);
  });
});
