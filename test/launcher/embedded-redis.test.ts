import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
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
