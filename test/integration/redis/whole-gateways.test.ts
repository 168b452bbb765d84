import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { held, streamed, streamedText } from '../../support/chat-requests.ts';
import { signIn } from '../../support/console-session.ts';
import { isSoak } from '../../support/faults/load.ts';
import { type GatewayProcess, TestGateway } from '../../support/gateway.ts';
import { redisKinds, settingsOf } from '../../support/redis-kinds/redis-kinds.ts';
import { createVideo, pollToEnd } from '../../support/sandbox-videos.ts';

const admin = { SLUICE_ADMIN_EMAIL: 'operator@example.com', SLUICE_ADMIN_PASSWORD: 'an operator password' };
const wordCount = 20;

/** Lines that a process has logged as a warning or worse, but those that a bare test server deserves. */
function complaints(process: GatewayProcess): string[] {
  return process
    .output()
    .split('\n')
    .filter((line) => /"level":[4-6]0/.test(line) && !/has no maxmemory|SLUICE_SECRET/.test(line));
}

async function tryEverything(gateway: TestGateway): Promise<void> {
  const client = gateway.client();
  const chunks = await client.chat.completions.create(streamed(`WORDS:${wordCount}@100`));
  assert.equal((await streamedText(chunks)).trim().split(' ').length, wordCount);
  const completion = await client.chat.completions.create(held('Reply with exactly: as it is'));
  assert.equal(completion.choices[0]?.message.content, 'as it is');
  // Between its polls BullMQ has the job.
  const { id } = await createVideo(client, { sandbox: { video: { duration_ms: 300 } } });
  assert.equal((await pollToEnd(client, id)).at(-1)?.status, 'completed');
  const { cookie } = await signIn(gateway, admin.SLUICE_ADMIN_EMAIL, admin.SLUICE_ADMIN_PASSWORD);
  const board = await fetch(`${gateway.url}/console/queues/api/queues?activeQueue=chat`, { headers: { cookie } });
  assert.equal(board.status, 200);
  await board.arrayBuffer();
}

describe('a whole gateway', { concurrency: 2 }, () => {
  for (const kind of redisKinds.filter(({ isAlwaysTried }) => isSoak || isAlwaysTried)) {
    test(`a gateway answers, streams, makes a video and shows its queues on ${kind.name}`, {
      timeout: 120_000,
    }, async () => {
      const redis = await kind.start();
      try {
        const settings = { ...admin, ...settingsOf(redis) };
        const gateway = await TestGateway.start({ redisUrl: redis.url, settings });
        try {
          await tryEverything(gateway);
          const codes = await Promise.all([...gateway.apis, ...gateway.workers].map((process) => process.stop()));
          assert.deepEqual(codes, [0, 0]);
          assert.deepEqual([...gateway.apis, ...gateway.workers].flatMap(complaints), []);
        } finally {
          await gateway.stop();
        }
      } finally {
        await redis.stop();
      }
    });
  }
});
