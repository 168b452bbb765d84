import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { test } from 'node:test';
import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { type FollowContext, followJob } from '../../../../api/pipeline/follow-job.ts';
import { ClientConnection, Handover } from '../../../../api/replies/client-connection.ts';
import type { Reply } from '../../../../api/replies/open-reply.ts';

/** A request that follows a job while Redis takes commands, and replies to none. */
async function followingInSilence() {
  const response = Object.assign(new EventEmitter(), { writableFinished: false, destroyed: false });
  const connection = new ClientConnection(response as unknown as ServerResponse, new Handover());
  const services = {
    redis: { 'sluice:attach': () => new Promise(() => undefined) },
    processId: 'api',
    readers: { open: () => ({ close: () => undefined }) },
  };
  const context = { ctx: {}, services, connection, job: { id: 'a'.repeat(32), account: 'account' } };
  const reply = { receiver: {}, finished: () => Promise.reject(new Error('nothing is attached')) };
  const following = followJob(context as unknown as FollowContext, async () => reply as unknown as Reply);
  following.catch(() => undefined);
  await yieldToEventLoop();
  return { following, response };
}

test('a request that follows a job gets 503 when Redis does not attach it in time', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const { following } = await followingInSilence();
  t.mock.timers.tick(10_000);
  await assert.rejects(following, { code: 'service_unavailable' });
});

test('a request that follows a job ends with its connection while Redis does not attach it', async () => {
  const { following, response } = await followingInSilence();
  response.emit('close');
  await assert.rejects(following, { code: 'cancelled' });
});
