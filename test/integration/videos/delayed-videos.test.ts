import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually } from '../../support/eventually.ts';
import { TestGateway } from '../../support/gateway.ts';
import { createVideo } from '../../support/sandbox-videos.ts';

test('GET /metrics shows a video between two polls as delayed, also while no worker is there to bring it back to its queue', async () => {
  const gateway = await TestGateway.start();
  /** What an api tells of the queue of videos. */
  const queue = async (): Promise<Record<string, number>> => {
    const text = await (await gateway.fetch('/metrics')).text();
    const found = text.matchAll(/^sluice_queue_(waiting|active|delayed)\{[^}]*capability="video"[^}]*\} (\S+)$/gm);
    return Object.fromEntries([...found].map(([, name, value]) => [name, Number(value)]));
  };
  try {
    const client = gateway.client();
    const { id } = await createVideo(client, { sandbox: { video: { duration_ms: 3000 } } });
    const between = { waiting: 0, active: 0, delayed: 1 };
    await eventually(async () => assert.deepEqual(await queue(), between));
    await gateway.workers[0]?.stop();
    // Whoever scales workers to none by what waits and runs alone would leave it so.
    await eventually(async () => assert.deepEqual(await queue(), between));
    await gateway.startWorker();
    await eventually(async () => assert.equal((await client.videos.retrieve(id)).status, 'completed'), 30_000);
    await eventually(async () => assert.deepEqual(await queue(), { waiting: 0, active: 0, delayed: 0 }));
  } finally {
    await gateway.stop();
  }
});
