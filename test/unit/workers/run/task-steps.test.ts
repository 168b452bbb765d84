import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TaskSteps } from '../../../../workers/run/task-steps.ts';

test('of a vendor whose pace is not known the steps in the last tenth of the slots are hurried, and a slow one takes none there', async () => {
  const steps = new TaskSteps(20);
  const ends: (() => void)[] = [];
  const step = (vendor: string): Promise<boolean | undefined> =>
    steps.run(vendor, async ({ isHurried }) => {
      if (!isHurried) await new Promise<void>((resolve) => ends.push(resolve));
      return isHurried;
    });
  const first = Array.from({ length: 20 }, () => step('one'));
  assert.deepEqual([await first[18], await first[19], ends.length], [true, true, 18]);
  // Others have what is kept, so far as they have little of it.
  const others = [step('other'), step('other'), step('other')];
  assert.deepEqual([await others[2], ends.length], [true, 20]);
  for (const end of ends) end();
  assert.deepEqual(new Set(await Promise.all([...first.slice(0, 18), others[0]])), new Set([false]));
});
