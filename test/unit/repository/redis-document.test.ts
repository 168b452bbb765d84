import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { admit } from '../../../api/admission/admit.ts';
import { adoptJob } from '../../../api/replies/adopt-job.ts';
import type { AnswerReaders } from '../../../api/replies/answer-readers.ts';
import { LeftJobs } from '../../../api/replies/left-jobs.ts';
import { SharedJobs, type SharedJobsDependencies } from '../../../api/replies/shared/shared-jobs.ts';
import { budgetPeriodAt, loadAccount, loadBudget } from '../../../shared/accounts/account-money.ts';
import { writeKeyFlag } from '../../../shared/accounts/key-flag.ts';
import { ApiError } from '../../../shared/errors.ts';
import { finishWithError, releaseLease, withdrawAttempt } from '../../../shared/jobs/attempt.ts';
import { forgetResource } from '../../../shared/jobs/forget.ts';
import { readerOf } from '../../../shared/jobs/inbox.ts';
import { createJobState, type JobIdentity, readJobState } from '../../../shared/jobs/job-state.ts';
import { publishedSeq } from '../../../shared/jobs/journal/published-seq.ts';
import { writeJournal } from '../../../shared/jobs/journal/write-journal.ts';
import { settlementOf, settleNow, sharedPrefix } from '../../../shared/jobs/settlement/settle.ts';
import { storeTask } from '../../../shared/jobs/store-task.ts';
import { storeUsage } from '../../../shared/jobs/store-usage.ts';
import { ClaimedQueue } from '../../../shared/queue/claimed-queue.ts';
import { ParkedJobs } from '../../../shared/queue/parking/parked-jobs.ts';
import { pause } from '../../../shared/queue/pause.ts';
import { CapabilityQueue } from '../../../shared/queue/queue.ts';
import * as keys from '../../../shared/redis/keys.ts';
import { createLogger } from '../../../shared/runtime/log.ts';
import { scopesText } from '../../../workers/pacing/call-scopes.ts';
import { reserveCall, returnCalls } from '../../../workers/pacing/reserve-call.ts';
import { admission, unlimitedCaller } from '../../support/admission.ts';
import { eventually } from '../../support/eventually.ts';
import { QueueFixture } from '../../support/faults/queue-fixture.ts';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const sources = ['api', 'workers', 'shared'].flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((path) => `${folder}/${path}`),
);
const scripts = sources.filter((path) => path.endsWith('.lua'));
const textOf = (path: string): string => readFileSync(join(root, path), 'utf8');
const page = textOf('docs/redis.md');

/** The rows of a section's tables, a list of cells each. */
function rowsOf(section: string): string[][] {
  const lines = section.split('\n').filter((line) => line.startsWith('| `'));
  return lines.map((line) => line.slice(2, -2).split(' | '));
}

/** What a cell has in code, with what varies as `<>`. */
function namesIn(cell = ''): string[] {
  return [...cell.matchAll(/`([^`]+)`/g)].map(([, name]) => (name as string).replace(/<[^>]*>/g, '<>'));
}

/** The text under a heading, by its anchor. */
const sections = new Map(
  page.split(/^#+ /m).map((text) => {
    const [heading = ''] = text.split('\n');
    return [
      heading
        .toLowerCase()
        .replace(/[^\w -]/g, '')
        .replaceAll(' ', '-'),
      text,
    ];
  }),
);
/** The row of each key, and of each channel. */
const rows = new Map(
  [...sections.values()].flatMap(rowsOf).flatMap((row) => {
    const [name = ''] = namesIn(row[0]);
    return name.startsWith('sluice:') ? [[name, row] as const] : [];
  }),
);
const documented = [...rows.keys()];

/** The fields of a hash in the section that the key's row links to; undefined where it links to none. */
function fieldsOf(key: string): string[] | undefined {
  const anchor = /\]\(#([\w-]+)\)/.exec(rows.get(key)?.[2] ?? '')?.[1];
  const section = sections.get(anchor ?? '');
  return section === undefined ? undefined : rowsOf(section).flatMap(([cell]) => namesIn(cell));
}

function matches(pattern: string, text: string): boolean {
  const literal = pattern.split('<>').map((part) => part.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'));
  return new RegExp(`^${literal.join('[^:{}]*')}$`).test(text);
}

/** What all builders of a module make of placeholders. */
function built(value: unknown): string[] {
  if (typeof value === 'string') return [value.replace(/\{([amv])\d+\}/, '{$1<>}')];
  if (typeof value === 'function') return built(value(...Array.from({ length: value.length }, () => '<>')));
  if (typeof value === 'object' && value !== null) return Object.values(value).flatMap(built);
  return [];
}

describe('docs/redis.md', () => {
  test('docs/redis.md names every script, and none that does not exist', () => {
    const rowsOfScripts = [...page.matchAll(/`([\w/-]+\/[\w-]+\.lua)`/g)].map(([, path]) => path as string);
    assert.deepEqual([...new Set(rowsOfScripts)].sort(), scripts.sort());
  });

  test('docs/redis.md names every key that the builders make, and no other', () => {
    const all = [...new Set(built({ ...keys }))];
    const isStart = (key: string): boolean => key.endsWith(':') || key === keys.queuePrefix('<>');
    const [starts, whole] = [all.filter(isStart), all.filter((key) => !isStart(key))];
    assert.ok(whole.length > 15 && starts.length > 2, String(all));
    assert.deepEqual(
      whole.filter((key) => !documented.includes(key)),
      [],
    );
    assert.deepEqual(
      starts.filter((start) => !documented.some((key) => key.startsWith(start))),
      [],
    );
    const open = starts.filter((start) => !start.startsWith('sluice:{m'));
    assert.deepEqual(
      documented.filter((key) => !whole.includes(key) && !open.some((start) => key.startsWith(start))),
      [],
    );
  });

  test("docs/redis.md names every suffix that scripts add to the start of an account's keys", () => {
    const added = scripts.flatMap((path) =>
      [...textOf(path).matchAll(/\bprefix \.\. '([\w-]+:?)'/g)].map(([, name]) => name as string),
    );
    assert.ok(added.length > 5);
    const missing = added.filter(
      (name) => !documented.includes(`sluice:{m<>}:${name}${name.endsWith(':') ? '<>' : ''}`),
    );
    assert.deepEqual(missing, []);
  });

  test('no source except shared/redis/script.ts writes the start of a key itself', () => {
    const writers = sources.filter((path) => /\.(ts|lua)$/.test(path) && /['"`]sluice:/.test(textOf(path)));
    // A script's name among the client's commands.
    assert.deepEqual(writers, ['shared/redis/script.ts']);
  });
});

describe('docs/redis.md and a Redis in use', () => {
  let queues: QueueFixture;
  let queue: CapabilityQueue;
  const commands: string[][] = [];
  /** Fields that states of jobs have had. */
  const stateFields = new Set<string>();

  const keepFields = async ({ id }: JobIdentity): Promise<void> => {
    for (const field of Object.keys(await queues.jobs.redis.hgetall(keys.jobKeys.state(id))))
      stateFields.add(field.replace(/^sharer:.*/, 'sharer:<>'));
  };

  before(async () => {
    queues = await QueueFixture.start();
    const { redis } = queues.jobs;
    const monitor = await redis.monitor();
    monitor.on('monitor', (_time: string, args: string[]) => commands.push(args));
    queue = queues.closeLater(new CapabilityQueue('chat', queues.redis.client));
    try {
      await runChat();
      await runTask();
      await runTurn();
      await runParked();
      await runHigh();
      await runRetry();
      await runShared();
      await redis.echo('all is seen');
      await eventually(() =>
        assert.ok(
          commands.some((args) => args.includes('all is seen')),
          'the monitor is behind',
        ),
      );
    } finally {
      monitor.disconnect();
    }
  });
  after(() => queues?.stop());

  /** A job with money, limits and an idempotency key: admitted, claimed, begun, answered in part, failed, settled, deleted. */
  async function runChat(): Promise<void> {
    const { redis } = queues.jobs;
    const budget = { amount: 1e12, period: 'day' } as const;
    const job = queues.jobs.identity({ idempotency: 'hash', resource: 'foreground' });
    const { account, apiKeyId } = job;
    await writeKeyFlag(redis, { id: apiKeyId, accountId: account }, 1);
    await loadAccount(redis, account, 'loading', async () => ({
      credit: 1e12,
      charged: 0,
      isSuspended: false,
      queueWeight: 1,
      queueByKey: false,
      maxPriority: 'normal',
    }));
    const { name: period } = budgetPeriodAt(budget.period, job.createdAt);
    await loadBudget(redis, { account, apiKeyId, period }, 0);
    const caller = { ...unlimitedCaller, rpm: 100, tpm: 1e6, budget };
    const stored = { request: '{}' };
    const hold = { fixed: 10, outputPrice: 10, outputTokens: 100, isGiven: false };
    const asked = { caller, hold, tokens: 10, reader: 'reader', stored, queued: stored };
    const { verdict, isQueued } = await admit(redis, admission(job, asked));
    assert.deepEqual([verdict, isQueued], ['admitted', true]);
    await keepFields(job);
    let isOver = false;
    const consumer = queues.consume(
      async (taken) => {
        assert.ok(taken.verdict?.verdict === 'run');
        const journal = `${keys.journalKeys.entries('worker-1')} 1`;
        await queues.jobs.write(job, taken.verdict.attempt, 1, ['a'], { journal });
        const messages = new Map([['reader+', [`${job.id} ${taken.verdict.attempt} 2 \nd"b"`]]]);
        const entry = { journal: 'worker-1', number: 1, oldestNeeded: 1, jobId: job.id, forgotten: [], messages };
        assert.deepEqual(await writeJournal(redis, entry), []);
        assert.equal(await publishedSeq(redis, { jobId: job.id }), 2);
        const end = { jobId: job.id, attempt: taken.verdict.attempt, retentionMs: 0, isCluster: false };
        await finishWithError(redis, end, new ApiError('server_error', 'The model failed.'));
        isOver = true;
        return 'done';
      },
      { capability: 'chat', begins: true },
    );
    await eventually(() => assert.ok(isOver, 'the job runs'));
    await consumer.close();
    await storeUsage(redis, job.id, { usage: '{"total_tokens":1}', cost: 10, saved: 5 });
    await keepFields(job);
    const state = await readJobState(redis, job.id);
    const settlement = state && settlementOf(state);
    assert.ok(settlement);
    await settleNow(redis, settlement);
    await forgetResource(redis, job.id);
    await keepFields(job);
  }

  /** A job whose request lies in a file and whose vendor runs a task, with a poll that is lost, and one that is given back. */
  async function runTask(): Promise<void> {
    const { redis } = queues.jobs;
    const job = queues.jobs.identity({ capability: 'video' });
    await createJobState(redis, job, 'reader', { requestBlob: 'blob' });
    await queues.jobs.take(job, { repeatable: false });
    const task = { vendor: 'vendor', account: 'one', model: 'model', task: 'task', attempt: 1, beganAt: 1 };
    assert.equal(await storeTask(redis, job.id, task), 'ok');
    const paused = { jobId: job.id, progress: 10, dueAt: 1, lifetimeMs: 60_000, isCluster: false };
    assert.equal(await pause(redis, { ...paused, attempt: 1 }), 'ok');
    await queues.jobs.take(job);
    await queues.jobs.expireLease(job);
    await queues.jobs.take(job);
    await keepFields(job);
    const drained = await queues.jobs.create();
    await queues.jobs.take(drained);
    assert.equal(await queues.jobs.renew(drained), 'ok');
    await keepFields(drained);
    assert.equal(await releaseLease(redis, drained.id, 1), 'released');
    await keepFields(drained);
    await queues.jobs.take(drained);
    assert.equal(await withdrawAttempt(redis, { jobId: drained.id, attempt: 2, hasCalled: false }), 'withdrawn');
    await keepFields(drained);
  }

  /** Jobs with a priority: one that its worker returns to the queue once, one that leaves unserved, and one for BullMQ's Worker. */
  async function runTurn(): Promise<void> {
    const [job, left, noted] = [queues.jobs.identity(), queues.jobs.identity(), queues.jobs.identity()];
    for (const each of [job, left, noted]) await queue.enqueue({ ...each, request: '{}' }, true);
    await queue.reader.depth();
    await queue.reader.progress();
    assert.equal(await queue.remove(left.id, true), true);
    let claims = 0;
    const consumer = queues.consume(async () => (claims++ === 0 ? 'requeued' : 'done'), {
      capability: 'chat',
      targetWaitMs: 1,
    });
    await eventually(async () => assert.ok(claims === 3 && !(await queue.has(job.id)), `${claims} claims`));
    await queue.noteClaimed(noted, 3);
    await consumer.close();
  }

  /** A job that is parked, and a call of a vendor with limits. */
  async function runParked(): Promise<void> {
    const { client } = queues.redis;
    const job = queues.jobs.identity();
    await queue.enqueue(job);
    const claimed = { token: 'claim', wanted: 1, lockMs: 60_000, workerId: '', targetWaitMs: 0, ended: [] };
    const { entries } = await new ClaimedQueue('chat').claim(client, claimed);
    assert.equal(entries.length, 1);
    const parked = { id: entries[0]?.id as string, token: 'claim', account: job.account, route: 'vendor/model' };
    const times = { waitMs: 0, intervalMs: 1, latestMs: 60_000, maxParked: 10, work: 1 };
    const jobs = new ParkedJobs('chat', client);
    assert.equal((await jobs.park({ ...parked, ...times })).verdict, 'parked');
    assert.equal(await queue.reader.parked(), 1);
    assert.equal(await queue.remove(job.id), true);
    assert.deepEqual(await jobs.unpark(), []);
    const limits = { rpm: 10, tpm: 1000, maxParallelRequests: 1 };
    const key = { name: 'vendor/key', limits };
    const scopes = scopesText([{ name: 'vendor', limits }, key, { name: 'vendor/key/model', limits }]);
    assert.equal((await reserveCall(client, { id: 'call', vendor: 'vendor', tokens: 10, scopes })).key, 0);
    const call = { id: 'call', scopes: [key], hasEnded: true, reservedTokens: 5, usedTokens: 0 };
    await returnCalls(client, 'vendor', [call]);
  }

  /** Jobs of high priority: one that leaves unserved, one that is claimed beside another job, and is parked and released. */
  async function runHigh(): Promise<void> {
    const { client } = queues.redis;
    const [left, job, other] = [queues.jobs.identity(), queues.jobs.identity(), queues.jobs.identity()];
    for (const each of [left, job]) await queue.enqueue({ ...each, request: '{}' }, false, undefined, [], 'high');
    await queue.enqueue({ ...other, request: '{}' }, true);
    await queue.reader.depth();
    assert.equal((await queue.reader.progress()).highLines.get(job.account), 2);
    assert.equal(await queue.remove(left.id, true), true);
    const terms = { token: 'claim', lockMs: 60_000, workerId: '', targetWaitMs: 1, highShare: 0.8 };
    const claim = (wanted: number) => new ClaimedQueue('chat').claim(client, { ...terms, wanted, ended: [] });
    const [entry] = (await claim(1)).entries;
    const parked = { id: entry?.id as string, token: 'claim', account: job.account, route: 'vendor/model' };
    const times = { waitMs: 0, intervalMs: 1, latestMs: 60_000, maxParked: 10, work: 1 };
    const jobs = new ParkedJobs('chat', client, 0, 0.8);
    assert.equal((await jobs.park({ ...parked, ...times })).verdict, 'parked');
    await jobs.unpark(new Map([['vendor/model', 1]]));
    assert.equal((await claim(2)).entries.length, 2);
  }

  /** A job that its caller leaves, and a retry adopts. */
  async function runRetry(): Promise<void> {
    const { redis } = queues.jobs;
    const job = queues.jobs.identity({ retryName: 'hash' });
    const hold = { fixed: 0, outputPrice: 0, outputTokens: 10, isGiven: false };
    const first = await admit(redis, admission(job, { hold, reader: 'reader', queued: { request: '{}' } }));
    assert.equal(first.verdict, 'admitted');
    const again = await admit(redis, admission(queues.jobs.identity({ retryName: 'hash' }), { isRetry: true }));
    assert.deepEqual([again.verdict, again.detail], ['replay', job.id]);
    const { log } = createLogger('silent', 'test');
    const services = { redis, isCluster: false, log } as ConstructorParameters<typeof LeftJobs>[0];
    await new LeftJobs(services).leave(job, false);
    await keepFields(job);
    const readers = { isLongSubscribed: true } as AnswerReaders;
    assert.equal(await adoptJob({ redis, isCluster: false, processId: 'api', readers }, job.id, 'retry'), true);
    await keepFields(job);
  }

  /** A job that requests of two processes share. */
  async function runShared(): Promise<void> {
    const { redis } = queues.jobs;
    const { log } = createLogger('silent', 'test');
    const open = (processId: string) =>
      new SharedJobs({ redis, isCluster: false, log, processId } as SharedJobsDependencies);
    const job = queues.jobs.identity({ idempotency: `${sharedPrefix}hash` });
    const [first, other] = [open('api-first'), open('api-other')];
    const hold = { fixed: 0, outputPrice: 0, outputTokens: 10, isGiven: false };
    const stateField = first.make(job.id, false);
    const admitted = await admit(redis, admission(job, { hold, reader: readerOf('api-first'), stateField }));
    assert.equal(admitted.verdict, 'admitted');
    assert.equal(await other.join(job, true), true);
    await keepFields(job);
    for (const jobs of [first, other]) await jobs.leave(job, { error: new ApiError('cancelled', 'Its caller left.') });
  }

  /** The keys and channels of a command. Those of a script are in the commands that it gives, which Redis tells of, too. */
  function keysOf([name = '', ...args]: readonly string[]): string[] {
    return /^(client|eval|evalsha)$/i.test(name) ? [] : args.filter((text) => text.startsWith('sluice:'));
  }

  test('docs/redis.md lists every key and channel that jobs touch', () => {
    const touched = new Set(commands.flatMap(keysOf));
    const unknown = [...touched].filter((key) => !documented.some((pattern) => matches(pattern, key)));
    assert.deepEqual(unknown, []);
    const met = documented.filter((pattern) => [...touched].some((key) => matches(pattern, key)));
    for (const kind of ['job', 'log', 'inbox', 'account', 'budget', 'rate', 'key', 'running', 'idempotency'])
      assert.ok(
        met.some((pattern) => pattern.includes(`}:${kind}:`)),
        `no ${kind} was touched`,
      );
  });

  test("docs/redis.md lists every key name that BullMQ's queues use", async () => {
    const unused = namesIn(/^BullMQ's other names \(([^)]*)\)/m.exec(page)?.[1]);
    const names = Object.keys((await queue.bull()).keys).filter((name) => name !== '');
    const missing = names.filter((name) => !documented.includes(`sluice:{q-<>}:<>:${name}`) && !unused.includes(name));
    assert.deepEqual(missing, []);
    const ours = documented.filter((key) => /^sluice:\{q-<>\}:<>:[\w-]+$/.test(key));
    assert.deepEqual(
      ours.filter((key) => !names.includes(key.split(':').at(-1) as string)),
      [],
    );
  });

  test("docs/redis.md lists every field of a job's state, and no other", () => {
    const fields = fieldsOf('sluice:{a<>}:job:<>');
    assert.deepEqual(fields?.sort(), [...stateFields].sort());
  });

  test("the test's jobs write every field of a state that a script names", () => {
    const ofStates = scripts.filter((path) => /job state \(hash\)|state of each job \(hash\)/.test(textOf(path)));
    assert.ok(ofStates.length > 10);
    const call = /redis\.call\('H(?:SET|MGET|GET|DEL|INCRBY)', (?:key|state|KEYS\[1\]),([^)]*)\)/g;
    const named = ofStates.flatMap((path) =>
      [...textOf(path).matchAll(call)].flatMap(([, words = '']) =>
        [...words.matchAll(/'([a-z]+)'/gi)].map(([, word]) => word as string),
      ),
    );
    assert.ok(named.length > 40);
    assert.deepEqual(
      named.filter((field) => !stateFields.has(field)),
      [],
    );
  });

  test('docs/redis.md lists every field of the other hashes that jobs read or write', () => {
    const seen = new Map<string, Set<string>>();
    for (const [name = '', key = '', ...args] of commands) {
      const pattern = documented.find((each) => matches(each, key));
      if (pattern === undefined || !/^h(m?set|m?get|del|exists|incrby|setnx)$/i.test(name)) continue;
      const isPairs = /^h(m?set|incrby|setnx)$/i.test(name);
      const fields = seen.get(pattern) ?? new Set();
      for (const [index, field] of args.entries()) if (!isPairs || index % 2 === 0) fields.add(field);
      seen.set(pattern, fields);
    }
    let checked = 0;
    for (const [pattern, fields] of seen) {
      // BullMQ's own, and those whose fields are ids.
      if (/:(leases|meta|reserved|rows)$/.test(pattern)) continue;
      const known = fieldsOf(pattern);
      assert.ok(known, `${pattern} has no list of its fields`);
      const missing = [...fields].filter((field) => !known.some((each) => matches(each, field)));
      assert.deepEqual(missing, [], pattern);
      checked++;
    }
    assert.ok(checked >= 6, [...seen.keys()].join(' '));
  });
});
