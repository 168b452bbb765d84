import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { held, streamed } from '../support/chat-requests.ts';
import { assertErrorAnswer } from '../support/error-answers.ts';
import { eventually } from '../support/eventually.ts';
import { JobRecords } from '../support/job-records.ts';
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
