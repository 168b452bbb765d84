import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { accountKeys, raisedKey } from '../../shared/redis/keys.ts';
import { held, streamed } from '../support/chat-requests.ts';
import { assertErrorAnswer } from '../support/error-answers.ts';
import { eventually } from '../support/eventually.ts';
import { JobRecords, jobIdOf } from '../support/job-records.ts';
import { vendorCalls } from '../support/vendor-journal.ts';

const slow = { first_token_ms: 120_000 };
const kinds = {
  chat: { path: '/v1/chat/completions', body: streamed('WORDS:2000@20'), next: held('Reply with exactly: again') },
  image: {
    path: '/v1/images/generations',
    body: { model: 'sandbox-image', prompt: 'A lighthouse', sandbox: slow },
    next: { model: 'sandbox-image', prompt: 'A lighthouse', size: '256x256' },
  },
  speech: {
    path: '/v1/audio/speech',
    body: { model: 'sandbox-speech', voice: 'alloy', input: 'A lighthouse.', sandbox: slow },
    next: { model: 'sandbox-speech', voice: 'alloy', input: 'A lighthouse.' },
  },
} as const;
type Kind = keyof typeof kinds;
const names = Object.keys(kinds) as Kind[];

describe('jobs after Redis is emptied', () => {
  it('every asynchronous job that was queued or running ends within 60 s after Redis is emptied, and GET shows it', async (t) => {
    const one = { WORKER_CONCURRENCY_CHAT: '1', WORKER_CONCURRENCY_IMAGE: '1', WORKER_CONCURRENCY_SPEECH: '1' };
    const records = await JobRecords.start({ apis: 2, settings: { ...one, SLUICE_RETENTION_DAYS: '3' } });
    try {
      const kindOf = new Map<string, Kind>();
      for (const kind of names) {
        const { path, body } = kinds[kind];
        for (let index = 0; index < 3; index++) {
          kindOf.set(await records.postLater({ ...body, user: kind }, {}, path), kind);
        }
      }
      const ids = [...kindOf.keys()];
      const statuses = async () => (await Promise.all(ids.map((id) => records.read(id)))).map(({ status }) => status);
      const oneRuns = ['in_progress', 'queued', 'queued'];
      await eventually(async () => {
        assert.deepEqual(await statuses(), [...oneRuns, ...oneRuns, ...oneRuns]);
        for (const kind of names) assert.equal((await vendorCalls(records.gateway, kind)).length, 1, kind);
      });
      await records.redis.flushall();
      const flushedAt = Date.now();
      for (const id of ids) assert.match((await records.read(id)).status, /^(queued|in_progress)$/);
      const rows = await eventually(async () => {
        const found = await records.db.selectFrom('jobs').selectAll().where('id', 'in', ids).execute();
        assert.ok(
          found.every(({ outcome }) => outcome !== null),
          'some have no end',
        );
        return found;
      }, 60_000);
      assert.equal(rows.length, ids.length);
      for (const { id, outcome, error_code: code } of rows) {
        assert.deepEqual([outcome, code], ['failed', 'outcome_unknown'], kindOf.get(id));
        const job = await records.read(id);
        assert.deepEqual([job.status, job.error?.code, job.result], ['failed', 'outcome_unknown', null]);
        await assertErrorAnswer(await records.gateway.fetch(`/v1/jobs/${id}/events`), 500, 'outcome_unknown');
      }
      for (const kind of names) {
        const times = rows.filter(({ id }) => kindOf.get(id) === kind).map(({ ended_at: at }) => (at ?? 0) - flushedAt);
        t.diagnostic(`${kind}, one running and two queued: ended ${times.join(', ')} ms after Redis was emptied`);
        const { path, next } = kinds[kind];
        const id = await records.postLater(next, {}, path);
        const row = await records.ended(id);
        assert.equal(row.outcome, 'completed', `${kind} does not go on`);
        const body = await records.db.selectFrom('job_bodies').selectAll().where('job_id', '=', id).executeTakeFirst();
        assert.equal((body?.expires_at ?? 0) - row.created_at, 3 * 86_400_000, 'kept for the retention time');
        assert.equal((await vendorCalls(records.gateway, kind)).length, 1, `a lost ${kind} was run again`);
      }
    } finally {
      await records.stop();
    }
  });
});

const queue = 'sluice:{q-chat}:chat';
const paced = { sandbox: { first_token_ms: 2000 } };

/** Of jobs: how many wait in the queue, are claimed, and hold something. */
async function unfinished({ redis }: JobRecords): Promise<number[]> {
  const holds = await Promise.all(accountKeys.allHolds().map((key) => redis.zcard(key)));
  return [
    (await redis.llen(`${queue}:wait`)) + (await redis.zcard(`${queue}:prioritized`)),
    await redis.llen(`${queue}:active`),
    holds.reduce((sum, count) => sum + count, 0),
  ];
}

describe('jobs after Redis has lost its last writes', () => {
  it('jobs that have ended in the ledger are not run again by a Redis that has lost their ends, and show what they came to', async () => {
    const records = await JobRecords.start({ workers: 0, settings: { WORKER_CONCURRENCY_CHAT: '2' } });
    const { gateway, redis } = records;
    try {
      const first = await gateway.startWorker();
      const asked = Array.from({ length: 5 }, () =>
        records.post(held('Reply with exactly: paid', { user: 'held', ...paced })),
      );
      const later = await records.postLater(held('Reply with exactly: kept', { user: 'later', ...paced }));
      const shared = () =>
        records.post(held('Reply with exactly: one', { user: 'shared', ...paced }), { 'x-sluice-single-flight': '1' });
      asked.push(shared());
      await eventually(async () => {
        assert.deepEqual(await unfinished(records), [5, 2, 7], 'not all of them wait or run');
        assert.equal((await vendorCalls(gateway)).length, 2);
      });
      await redis.save();
      const answers = await Promise.all(asked);
      for (const id of [...answers.map(jobIdOf), later]) assert.equal((await records.ended(id)).outcome, 'completed');
      const calls = (await vendorCalls(gateway)).length;
      assert.equal(calls, 7);
      const raised = await redis.get(raisedKey);
      await first.kill();
      await gateway.redis?.kill();
      await gateway.redis?.restart();
      await eventually(async () => {
        const now = await redis.get(raisedKey);
        assert.ok(now !== null && now !== raised, 'Redis is not raised to the ledger');
      });
      assert.equal((await unfinished(records))[2], 0, 'the ended jobs hold something');
      const shown = await records.read(later);
      assert.deepEqual([shown.status, shown.result?.choices[0]?.message.content], ['completed', 'kept']);
      await gateway.startWorker();
      await eventually(async () => assert.deepEqual(await unfinished(records), [0, 0, 0]), 60_000);
      assert.equal((await vendorCalls(gateway)).length, calls, 'calls of the vendor');
      assert.equal((await shared()).status, 200, 'the name of a shared job that is gone keeps nobody waiting');
      assert.equal((await vendorCalls(gateway)).length, calls + 1);
    } finally {
      await records.stop();
    }
  });
});
