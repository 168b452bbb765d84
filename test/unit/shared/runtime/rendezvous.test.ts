import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { rendezvous } from '../../../../shared/runtime/rendezvous.ts';

const candidates = ['openai/gpt-5', 'azure/gpt-5', 'key-a', 'key-b', 'key-c'];

const chosen = (affinity: string, among: readonly string[]): string => {
  const draw = rendezvous(affinity);
  return among.reduce((best, each) => (draw(each) > draw(best) ? each : best));
};

describe('rendezvous hashing', () => {
  it('one affinity chooses the same candidate each time, and different ones are spread evenly', () => {
    const counts = new Map<string, number>();
    for (let index = 0; index < 10_000; index++) {
      const choice = chosen(`account t${index.toString(36)}`, candidates);
      assert.equal(choice, chosen(`account t${index.toString(36)}`, [...candidates].reverse()));
      counts.set(choice, (counts.get(choice) ?? 0) + 1);
    }
    for (const name of candidates) {
      const count = counts.get(name) ?? 0;
      assert.ok(count > 1800 && count < 2200, `${name} ${count}`);
    }
  });

  it('a candidate that goes moves only the affinities that had chosen it', () => {
    for (let index = 0; index < 2000; index++) {
      const before = chosen(`account t${index}`, candidates);
      const after = chosen(
        `account t${index}`,
        candidates.filter((name) => name !== 'key-b'),
      );
      if (before !== 'key-b') assert.equal(after, before);
    }
  });
});
