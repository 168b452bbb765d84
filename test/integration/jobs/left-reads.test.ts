import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { stopDatabase } from '../../support/database-faults.ts';
import { eventually } from '../../support/eventually.ts';
import { TestGateway } from '../../support/gateway.ts';
import { RawRequest } from '../../support/raw-request.ts';

describe('reads whose client has left', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await TestGateway.start({ workers: 0 });
  });
  after(() => gateway.stop());

  it('a client that leaves before its job is looked for in a database that is away ends no process', async () => {
    const job = `job_${randomBytes(16).toString('hex')}`;
    assert.equal((await gateway.fetch(`/v1/jobs/${job}`)).status, 404);
    const bringBack = await stopDatabase(gateway);
    try {
      for (let number = 0; number < 50; number++) {
        const { socket, closed } = await RawRequest.open(gateway.url, {
          method: 'GET',
          path: `/v1/jobs/${job}`,
          key: gateway.apiKey,
        });
        socket.resetAndDestroy();
        await closed;
      }
      // The reads that nobody waits for have failed by the time that this one has.
      assert.equal((await gateway.fetch(`/v1/jobs/${job}`)).status, 503);
    } finally {
      await bringBack();
    }
    await eventually(async () => {
      const response = await gateway.fetch(`/v1/jobs/${job}`);
      assert.equal(response.status, 404, 'the database is back');
    });
    assert.doesNotMatch(gateway.apis[0]?.output() ?? '', /unhandled/);
  });
});
