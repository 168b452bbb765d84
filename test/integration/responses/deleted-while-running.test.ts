import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, before, describe, it } from 'node:test';
import { eventually } from '../../support/eventually.ts';
import type { GatewayProcess } from '../../support/gateway.ts';
import { JobRecords } from '../../support/job-records.ts';
import { storedBlobs } from '../../support/stored-blobs.ts';

/** Too long for a request that travels with its job: it is a file. */
const input = `${'An otter sleeps on its back. '.repeat(3000)} WORDS:500@40`;

describe('responses that are deleted while they run', () => {
  let records: JobRecords;
  before(async () => {
    records = await JobRecords.start();
  });
  after(() => records.stop());

  /** A response of which some text has come. */
  async function begin(): Promise<{ id: string; leave(): Promise<void> }> {
    const body = { model: 'sandbox-chat', input, background: true, stream: true };
    const response = await records.post(body, {}, { path: '/v1/responses' });
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    let text = '';
    while (!text.includes('output_text.delta')) text += Buffer.from((await reader.read()).value ?? []).toString();
    const id = /"id":"resp_([0-9a-f]{32})"/.exec(text)?.[1];
    assert.ok(id !== undefined, 'the stream has an id');
    return { id, leave: () => reader.cancel() };
  }

  async function remove(id: string): Promise<void> {
    const deleted = await records.gateway.fetch(`/v1/responses/resp_${id}`, { method: 'DELETE' });
    assert.equal(deleted.status, 200);
  }

  it('a response that is deleted while it runs is charged for its prompt and its text, and its request is deleted then', async () => {
    const { id, leave } = await begin();
    const [worker] = records.gateway.workers as [GatewayProcess];
    // It learns of the end once all is deleted that the api deletes.
    worker.child.kill('SIGSTOP');
    await remove(id);
    assert.equal((await storedBlobs(records.gateway.dataDir)).length, 1, 'its request is yet to be counted');
    worker.child.kill('SIGCONT');
    const { outcome, usage, cost } = await records.ended(id);
    const { prompt_tokens: prompt } = JSON.parse(usage ?? '{}') as { prompt_tokens?: number };
    assert.deepEqual([outcome, Number(prompt) > 20_000, Number(cost) > 0], ['cancelled', true, true]);
    await eventually(async () => assert.deepEqual(await storedBlobs(records.gateway.dataDir), []));
    await leave();
  });

  it('a response that is deleted once its worker has counted it leaves no request behind', async () => {
    const { id, leave } = await begin();
    const cancelled = await records.gateway.fetch(`/v1/responses/resp_${id}/cancel`, { method: 'POST' });
    assert.equal(cancelled.status, 200);
    await records.ended(id);
    await remove(id);
    assert.deepEqual(await storedBlobs(records.gateway.dataDir), []);
    await leave();
  });

  it('a response that is deleted while it waits for a worker leaves no request behind', async () => {
    const [worker] = records.gateway.workers as [GatewayProcess];
    const exited = once(worker.child, 'exit');
    worker.child.kill('SIGTERM');
    await exited;
    const body = { model: 'sandbox-chat', input, background: true };
    const made = (await (await records.post(body, {}, { path: '/v1/responses' })).json()) as { id: string };
    await remove(made.id.slice('resp_'.length));
    assert.deepEqual(await storedBlobs(records.gateway.dataDir), []);
  });
});
