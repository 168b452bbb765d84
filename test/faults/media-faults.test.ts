import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { sql } from 'kysely';
import type { JobObject } from '../../api/pipeline/job-object.ts';
import { openDatabase } from '../../shared/database/database.ts';
import { endedJob } from '../support/ended-job.ts';
import { eventually } from '../support/eventually.ts';
import { readJournal } from '../support/faults/checker.ts';
import { type StoppingPoint, startDoomedWorkers } from '../support/faults/doomed-worker.ts';
import { TestGateway } from '../support/gateway.ts';

/** Where a worker is killed, and how the job ends that it was at. */
interface Phase extends StoppingPoint {
  readonly name: string;
  readonly status: 'completed' | 'failed';
  readonly errorCode?: string;
  /** How often the vendor was asked to make something. */
  readonly creations: number;
}

const unknown = { status: 'failed', errorCode: 'outcome_unknown' } as const;
const completed = { status: 'completed' } as const;
const phases: readonly Phase[] = [
  { name: 'before begin', script: 'begin', stop: 'before', call: 1, ...completed, creations: 1 },
  // "sent" is committed with the attempt: whether the vendor was called, nobody can know.
  { name: 'right after begin', script: 'begin', stop: 'after', call: 1, ...unknown, creations: 0 },
  { name: 'before finish', script: 'finish', stop: 'before', call: 1, ...unknown, creations: 1 },
  { name: 'right after finish', script: 'finish', stop: 'after', call: 1, ...completed, creations: 1 },
  { name: 'before settle', script: 'settle', stop: 'before', call: 1, ...completed, creations: 1 },
  { name: 'right after settle', script: 'settle', stop: 'after', call: 1, ...completed, creations: 1 },
];

const requests = {
  image: { path: '/v1/images/generations', body: { model: 'sandbox-image', prompt: 'a canal', size: '256x256' } },
  speech: { path: '/v1/audio/speech', body: { model: 'sandbox-speech', voice: 'alloy', input: 'A canal.' } },
} as const;

async function submit(gateway: TestGateway, kind: keyof typeof requests, user: string): Promise<string> {
  const { path, body } = requests[kind];
  const answer = await gateway.fetch(path, {
    method: 'POST',
    headers: { prefer: 'respond-async' },
    body: JSON.stringify({ ...body, user }),
  });
  assert.equal(answer.status, 202, await answer.clone().text());
  return ((await answer.json()) as JobObject).id;
}

/** How often each job stands in the ledger, and with which outcome. */
async function records(gateway: TestGateway): Promise<Map<string, string[]>> {
  const database = await openDatabase(gateway);
  try {
    const { rows } = await sql<{ id: string; outcome: string }>`select id, outcome from jobs`.execute(database);
    const byId = new Map<string, string[]>();
    for (const { id, outcome } of rows) byId.set(id, [...(byId.get(id) ?? []), outcome]);
    return byId;
  } finally {
    await database.destroy();
  }
}

describe('media jobs of killed workers', { concurrency: 2 }, () => {
  for (const kind of ['image', 'speech'] as const) {
    test(`the ${kind} job of a worker killed in any phase has one outcome, one record and at most one creation`, async (t) => {
      const settings = { [`WORKER_CONCURRENCY_${kind.toUpperCase()}`]: '1' };
      const gateway = await TestGateway.start({ workers: 0 });
      try {
        // Each doomed worker takes one job at a time and dies at its first: as many jobs as workers.
        const victims = new Set<string>();
        const { hits } = await startDoomedWorkers(gateway, phases, settings, victims);
        const users = new Map<string, string>();
        for (const phase of phases) {
          const user = `${kind} ${phase.name}`;
          users.set(await submit(gateway, kind, user), user);
        }
        const jobsHit = await hits;
        await gateway.startWorker();
        const jobs = await Promise.all([...users.keys()].map((id) => endedJob(gateway, id)));
        const journal = await readJournal(gateway.sandbox.url);
        const ledger = await eventually(async () => {
          const found = await records(gateway);
          for (const { id } of jobs) assert.ok(found.get(id.slice(4))?.[0], `no outcome of ${id} in the ledger`);
          return found;
        });
        for (const [index, phase] of phases.entries()) {
          const job = jobs.find(({ id }) => id === `job_${jobsHit[index]}`);
          assert.ok(job, `${phase.name}: no job was hit`);
          const creations = journal.get(users.get(job.id) as string)?.length ?? 0;
          t.diagnostic(
            `${kind}, worker SIGKILL ${phase.name}: ${job.status} ${job.error?.code ?? ''}, ${creations} creations`,
          );
          assert.equal(job.status, phase.status, phase.name);
          assert.equal(job.error?.code, phase.errorCode, phase.name);
          assert.equal(job.result !== null, phase.status === 'completed', `result: ${phase.name}`);
          assert.equal(creations, phase.creations, `creations: ${phase.name}`);
          assert.deepEqual(ledger.get(job.id.slice(4)), [phase.status], `ledger: ${phase.name}`);
        }
      } finally {
        await gateway.stop();
      }
    });
  }
});
