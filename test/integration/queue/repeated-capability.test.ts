import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually } from '../../support/eventually.ts';
import { TestGateway } from '../../support/gateway.ts';

test('a worker whose command line names a capability twice consumes its queue once, within its concurrency', async () => {
  const gateway = await TestGateway.start({ apis: 0, workers: 0 });
  try {
    const worker = await gateway.startWorker({}, 'chat', 'embedding', 'chat');
    await eventually(() => assert.match(worker.output(), /"capabilities":\["chat","embedding"\].*"msg":"consuming"/));
  } finally {
    await gateway.stop();
  }
});
