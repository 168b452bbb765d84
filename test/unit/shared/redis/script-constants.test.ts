import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { lowEnding, lowWeight } from '../../../../shared/queue/reading/queue-reader.ts';
import { maxAheadMs } from '../../../../shared/redis/script.ts';
import { increase } from '../../../../workers/pacing/learned-limits.ts';

/** What stands in a script and, for the same decision, in TypeScript. */
const pairs = [
  { file: 'shared/redis/is-ahead.lua', line: /^local maxAheadMs = (\d+)$/m, values: [maxAheadMs] },
  {
    file: 'shared/queue/lines.lua',
    line: /^local lowEnding, lowWeight = '(.*)', (\d+)$/m,
    values: [lowEnding, lowWeight],
  },
  {
    file: 'workers/pacing/learn-limit.lua',
    line: /^local decrease, increase = [\d.]+, ([\d.]+)$/m,
    values: [increase],
  },
];

for (const { file, line, values } of pairs) {
  test(`${file} and the TypeScript beside it have the same ${values.join(' and ')}`, () => {
    const [, ...found] = line.exec(readFileSync(new URL(`../../../../${file}`, import.meta.url), 'utf8')) ?? [];
    assert.deepEqual(found, values.map(String));
  });
}
