import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { connectRedis, type RedisClient, type RedisHandle } from '../../../../shared/redis/redis.ts';
import { isRefusal } from '../../../../shared/redis/script.ts';
import { createLogger } from '../../../../shared/runtime/log.ts';
import { startRedis, type TestRedis } from '../../../support/redis.ts';

describe('a script that Redis has forgotten', () => {
  let server: TestRedis;
  let redis: RedisHandle;
  before(async () => {
    server = await startRedis();
    redis = await connectRedis(server.url, createLogger('silent', 'test').log);
    redis.client.defineCommand('echoed', { numberOfKeys: 0, lua: 'return ARGV[1]' });
  });
  after(async () => {
    await redis?.close();
    await server?.stop();
  });

  const run = (text: string) => (redis.client as RedisClient & { echoed(text: string): Promise<string> }).echoed(text);

  it('a script that Redis has forgotten is sent again at once, with the commands sent beside and after it', {
    timeout: 10_000,
  }, async () => {
    assert.equal(await run('first'), 'first');
    for (let round = 0; round < 3; round++) {
      await redis.client.script('FLUSH');
      const replies = [run('one'), redis.client.ping(), run('two')];
      assert.deepEqual(await Promise.all(replies), ['one', 'PONG', 'two']);
      await redis.client.script('FLUSH');
      assert.equal(await run('alone'), 'alone');
    }
  });
});

describe('isRefusal', () => {
  const after = (error: string): Error => new Error(`Too many Cluster redirections. Last error: ${error}`);

  it('isRefusal is true of calls that the nodes of a Cluster have sent to each other for too long', () => {
    assert.ok(isRefusal(after('ReplyError: TRYAGAIN Multiple keys request during rehashing of slot')));
    assert.ok(isRefusal(after('ReplyError: ASK 16303 127.0.0.1:25111')));
    assert.ok(isRefusal(after('ReplyError: MOVED 16303 127.0.0.1:19443')));
  });

  it('isRefusal is false of a call that may have run before its connection was lost', () => {
    assert.ok(!isRefusal(after('Error: Connection is closed.')));
    assert.ok(!isRefusal(new Error('Connection is closed.')));
  });
});
