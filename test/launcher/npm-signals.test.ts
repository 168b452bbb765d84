import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';
import { bareEnvironment } from './launcher-process.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

describe('a SIGTERM to npm, which its shell may keep for itself', () => {
  let redis: TestRedis;
  let data = '';
  const started: ChildProcess[] = [];
  before(async () => {
    redis = await startRedis();
    data = mkdtempSync(join(tmpdir(), 'sluice-test-npm-'));
  });
  after(async () => {
    // All that a failed test has left: each npm leads a group.
    for (const { pid } of started) {
      try {
        process.kill(-(pid as number), 'SIGKILL');
      } catch {
        // It has ended, as it should.
      }
    }
    await redis.stop();
    await rm(data, { recursive: true, force: true });
  });

  for (const [script, settings] of [
    ['api', () => ({ REDIS_URL: redis.url, SLUICE_LAME_DUCK_SECONDS: '0' })],
    ['start', () => ({})],
  ] as const) {
    it(`npm run ${script} leaves nothing behind: Sluice ends with npm`, async () => {
      const port = String(await freePort());
      const dataDir = join(data, script);
      const npm = spawn('npm', ['run', '--silent', script], {
        cwd: root,
        env: { ...bareEnvironment(), PORT: port, SLUICE_DATA_DIR: dataDir, ...settings() },
        stdio: 'ignore',
        detached: true,
      });
      started.push(npm);
      const exit = once(npm, 'exit');
      const health = () => fetch(`http://127.0.0.1:${port}/healthz`);
      await eventually(async () => assert.equal((await health()).status, 200), 60_000);
      npm.kill('SIGTERM');
      await exit;
      await eventually(async () => {
        await assert.rejects(health());
        assert.throws(() => process.kill(-(npm.pid as number), 0), { code: 'ESRCH' });
      }, 30_000);
    });
  }
});
