import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { TestGateway } from '../../support/gateway.ts';

describe('answers that a cache must not keep', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await TestGateway.start({ workers: 0 });
  });
  after(() => gateway?.stop());

  it('an answer to a GET under /v1 is not to be stored, with a key in any header, and an error neither', async () => {
    const unknown = `job_${'0'.repeat(32)}`;
    for (const [path, status] of [
      ...(['models', 'models/sandbox-chat', 'key', 'usage', 'jobs', 'videos'] as const).map((name) => [name, 200]),
      ...[`jobs/${unknown}`, `responses/${unknown}`, `videos/${unknown}/content`, 'nothing'].map((name) => [name, 404]),
    ]) {
      for (const headers of [{ authorization: `Bearer ${gateway.apiKey}` }, { 'x-api-key': gateway.apiKey }]) {
        const answer = await fetch(`${gateway.url}/v1/${path}`, { headers: headers as Record<string, string> });
        await answer.arrayBuffer();
        assert.deepEqual([answer.status, answer.headers.get('cache-control')], [status, 'no-store'], String(path));
      }
    }
    assert.equal((await fetch(`${gateway.url}/v1/key`)).headers.get('cache-control'), 'no-store');
  });
});
