import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Redis } from 'ioredis';
import { refusedKeys } from '../../../shared/redis/keys.ts';
import { eventually } from '../../support/eventually.ts';
import { TestGateway } from '../../support/gateway.ts';

describe('paths in the access log', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await TestGateway.start({ workers: 0 });
  });
  after(() => gateway.stop());

  it('an API key in the path of a request is neither logged nor kept with the refused request', async () => {
    const { apiKey } = gateway;
    const last = '/v1/models/task-1234567890123';
    for (const path of [`/v1/models/${apiKey}`, `/v1/${apiKey}/chat/completions?key=${apiKey}`, last]) {
      assert.equal((await gateway.fetch(path)).status, 404);
    }
    const log = await eventually(() => {
      const text = gateway.apis[0]?.output() ?? '';
      assert.ok(text.includes(`"path":"${last}"`), 'the last request is not logged');
      return text;
    });
    assert.ok(!log.includes(apiKey), 'the key is logged');
    for (const path of ['/v1/models/[key]', '/v1/[key]/chat/completions']) assert.ok(log.includes(`"path":"${path}"`));
    const redis = new Redis(gateway.redisUrl.split(',')[0] as string);
    try {
      await eventually(async () => {
        const rows = await redis.hvals(refusedKeys.rows);
        assert.equal(rows.length, 3, 'they are not kept yet');
        assert.ok(!rows.join('\n').includes(apiKey), 'the key is kept');
      });
    } finally {
      redis.disconnect();
    }
  });
});
