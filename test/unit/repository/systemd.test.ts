import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

const read = (path: string): string => readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8');

test('the unit of systemd leaves the launcher the time of its apis, of its workers behind them, and of Redis at last', () => {
  const defaults = read('launcher/run-launcher.ts');
  const secondsOf = (name: string): number => Number(new RegExp(`${name}: '(\\d+)'`).exec(defaults)?.[1]);
  const each = secondsOf('SLUICE_LAME_DUCK_SECONDS') + secondsOf('SLUICE_SHUTDOWN_SECONDS') + 10;
  const [, stop] = /^TimeoutStopSec=(\d+)$/m.exec(read('deploy/systemd/sluice.service')) ?? [];
  assert.ok(Number(stop) >= 2 * each + 20, `${stop} s`);
});
