import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { type EmbeddedRedis, startEmbeddedRedis } from '../../launcher/embedded-redis.ts';

describe('the Redis of an earlier start', () => {
  let dataDir = '';
  let leftover: EmbeddedRedis;
  beforeEach(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'sluice-test-embedded-'));
    leftover = await startEmbeddedRedis(dataDir);
  });
  afterEach(async () => {
    await leftover?.stop(5000);
    await rm(dataDir, { recursive: true, force: true });
  });

  test('a Redis that was left behind is ended before another one starts on its files', async () => {
    const next = await startEmbeddedRedis(dataDir);
    await leftover.ended;
    assert.notEqual(next.pid, leftover.pid);
    await next.stop(5000);
  });

  test('a Redis that was left behind and does not answer is not joined by another one on its files', {
    timeout: 60_000,
  }, async () => {
    process.kill(leftover.pid, 'SIGSTOP');
    try {
      await assert.rejects(startEmbeddedRedis(dataDir), { name: 'ConfigError', message: /does not end/ });
    } finally {
      process.kill(leftover.pid, 'SIGCONT');
    }
  });
});

describe('a redis-server of before 7.0', () => {
  test('a redis-server that refuses settings which came with 7.0 starts, as those of many distributions do', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'sluice-test-old-redis-'));
    const { PATH = '' } = process.env;
    try {
      // It reads its settings as 6.2 does, and goes on as the one of this machine.
      const program = `#!/bin/sh
settings=$(cat)
case "$settings" in *listpack*) echo 'Bad directive or wrong number of arguments'; exit 1 ;; esac
PATH=\${PATH#*:}
exec redis-server - <<SETTINGS
$settings
SETTINGS
`;
      await writeFile(join(folder, 'redis-server'), program, { mode: 0o700 });
      process.env.PATH = `${folder}${delimiter}${PATH}`;
      const redis = await startEmbeddedRedis(join(folder, 'data'));
      assert.equal(redis.durable, true);
      await redis.stop(5000);
    } finally {
      process.env.PATH = PATH;
      await rm(folder, { recursive: true, force: true });
    }
  });
});
