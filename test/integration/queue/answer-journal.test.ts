import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import type { JobIdentity } from '../../../shared/jobs/job-state.ts';
import { eventually } from '../../support/eventually.ts';
import { JobFixture } from '../../support/faults/job-fixture.ts';
import { loadProduct } from '../../support/gateway.ts';
import { unlimitedBandwidth } from '../../support/unlimited-bandwidth.ts';

const { jobKeys, journalKeys } = await loadProduct<typeof import('../../../shared/redis/keys.ts')>('shared/redis/keys');
const { createJobState, readJobState } =
  await loadProduct<typeof import('../../../shared/jobs/job-state.ts')>('shared/jobs/job-state');
const { readLog } = await loadProduct<typeof import('../../../shared/jobs/answer-log.ts')>('shared/jobs/answer-log');
const { batchAfter, parseBatch } =
  await loadProduct<typeof import('../../../shared/jobs/append.ts')>('shared/jobs/append');
const { attach } = await loadProduct<typeof import('../../../shared/jobs/attach.ts')>('shared/jobs/attach');
const { finish } = await loadProduct<typeof import('../../../shared/jobs/attempt.ts')>('shared/jobs/attempt');
const { Inbox } = await loadProduct<typeof import('../../../shared/jobs/inbox.ts')>('shared/jobs/inbox');
const { publishedSeq } = await loadProduct<typeof import('../../../shared/jobs/journal/published-seq.ts')>(
  'shared/jobs/journal/published-seq',
);
const { writeJournal } = await loadProduct<typeof import('../../../shared/jobs/journal/write-journal.ts')>(
  'shared/jobs/journal/write-journal',
);
const { connectRedis } = await loadProduct<typeof import('../../../shared/redis/redis.ts')>('shared/redis/redis');
const { createLogger } = await loadProduct<typeof import('../../../shared/runtime/log.ts')>('shared/runtime/log');
const { writeFor } =
  await loadProduct<typeof import('../../../shared/runtime/wire-version.ts')>('shared/runtime/wire-version');
const { AnswerJournal } =
  await loadProduct<typeof import('../../../workers/run/answer-journal.ts')>('workers/run/answer-journal');
const { FrameWriter } =
  await loadProduct<typeof import('../../../workers/run/frame-writer.ts')>('workers/run/frame-writer');

const { log } = createLogger('silent', 'test');
let jobs: JobFixture;
let handle: Awaited<ReturnType<typeof connectRedis>>;
let journal: InstanceType<typeof AnswerJournal>;
let reader: Awaited<ReturnType<typeof Inbox.open>>;
let streams: Stream[] = [];
/** What a reader takes of what came live, by job: `<number> <text>` of each frame. And what came, by its numbers. */
let received: Map<string, string[]>;
let arrived: string[];
let workers = 0;

before(async () => {
  jobs = await JobFixture.start();
  handle = await connectRedis(new URL(jobs.server.url).href, log);
  const listener = {
    frames(jobId: string, text: string, start: number): void {
      const batch = parseBatch(text, start);
      const had = received.get(jobId) ?? [];
      arrived.push(batch.frames.map(({ seq }) => seq).join(' '));
      const frames = batchAfter(batch, had.length)?.frames ?? [];
      received.set(jobId, [...had, ...frames.map((frame) => `${frame.seq} ${frame.text}`)]);
    },
  };
  reader = await Inbox.open(handle, 'api+', listener, log);
});

after(async () => {
  reader?.close();
  await handle?.close();
  await jobs?.stop();
});

beforeEach(() => {
  received = new Map();
  arrived = [];
  journal = new AnswerJournal(handle.client, `worker-${++workers}`, log);
});

afterEach(async () => {
  for (const { writer } of streams) writer.leave(true);
  streams = [];
  await journal.close();
});

/** A stream of this worker, and what is known of it. */
class Stream {
  readonly job: JobIdentity;
  readonly writer: InstanceType<typeof FrameWriter>;
  lost: string | undefined;
  confirmations = 0;

  private constructor(job: JobIdentity) {
    this.job = job;
    this.writer = new FrameWriter({
      ...{ redis: handle.client, isCluster: false, journal, blobs: {} as never, jobId: job.id, attempt: 1, lastSeq: 0 },
      ...{ lifetimeMs: 60_000, account: job.account, bandwidth: unlimitedBandwidth },
      onConfirmed: () => this.confirmations++,
      onLost: (reason) => {
        this.lost = String(reason);
      },
    });
    streams.push(this);
  }

  /** One that has its first frame in its log. */
  static async begin(readers = 'api+'): Promise<Stream> {
    const job = jobs.identity();
    await createJobState(jobs.redis, job, readers);
    await jobs.take(job);
    const stream = new Stream(job);
    stream.write('1');
    await stream.writer.flushed();
    return stream;
  }

  write(text: string): void {
    this.writer.write({ type: 'delta', text });
  }

  get received(): string[] {
    return received.get(this.job.id) ?? [];
  }

  /** Resolves once the reader has so many frames. */
  async hasReceived(count: number): Promise<void> {
    await eventually(() => assert.equal(this.received.length, count));
  }

  async logged(): Promise<string[]> {
    const { batches } = await readLog(jobs.redis, this.job.id, 0);
    return batches.flatMap(({ frames }) => frames.map(({ seq, text }) => `${seq} ${text}`));
  }

  async end(): Promise<string> {
    await this.writer.close();
    const last = await this.writer.endWith('{}');
    assert.ok(last !== undefined, 'the writer has all frames');
    const outcome = { outcome: 'completed' as const, retentionMs: 0, isCluster: false };
    const reply = await finish(handle.client, { jobId: this.job.id, attempt: 1, ...outcome, ...last });
    return reply.verdict;
  }
}

const entriesOf = (name: string): Promise<number> => jobs.redis.xlen(journalKeys.entries(name));

describe('AnswerJournal', () => {
  test('frames of twenty streams at one moment are one entry, and their logs have them a moment later', async () => {
    const some = await Promise.all(Array.from({ length: 20 }, () => Stream.begin()));
    for (const stream of some) stream.write('2');
    await Promise.all(some.map((stream) => stream.hasReceived(2)));
    assert.equal(await entriesOf(journal.name), 1);
    for (const stream of some) assert.deepEqual(await stream.logged(), ['1 1'], 'not yet in its log');
    for (const stream of some) {
      await eventually(async () => assert.deepEqual(await stream.logged(), ['1 1', '2 2']));
      assert.deepEqual(stream.received.slice(0, 2), ['1 1', '2 2']);
      // Redis has the entry before the writer has its reply.
      await eventually(() => assert.equal(stream.confirmations, 2, 'the log alone confirms who owns the job'));
    }
  });

  test('a stream gets each frame to its reader once, in order, and all of them into its log, however it ends', async () => {
    const [paced, burst] = [await Stream.begin(), await Stream.begin()];
    const numbers = Array.from({ length: 60 }, (_, index) => index + 2);
    for (const number of numbers) {
      paced.write(`${number}`);
      await paced.hasReceived(number);
      if (number === 30) await paced.writer.flushed();
      burst.write(`${number}`);
    }
    const whole = [1, ...numbers].map((number) => `${number} ${number}`);
    for (const stream of [paced, burst]) {
      assert.equal(await stream.end(), 'finished');
      await stream.hasReceived(62);
      assert.deepEqual(stream.received, [...whole, '62 {}']);
      assert.deepEqual(await stream.logged(), [...whole, '62 {}']);
    }
  });

  test('whoever ends a job gives its log what readers have of it, and nothing of it is published after its end', async () => {
    const [cut, other] = [await Stream.begin(), await Stream.begin()];
    for (const text of ['2', '3']) {
      for (const stream of [cut, other]) stream.write(text);
      await cut.hasReceived(Number(text));
    }
    assert.deepEqual(await cut.logged(), ['1 1']);
    assert.equal((await jobs.end(cut.job, { outcome: 'cancelled' })).verdict, 'finished');
    cut.write('late');
    other.write('4');
    await other.hasReceived(4);
    await eventually(() => assert.equal(cut.lost, 'ended'));
    assert.deepEqual(await cut.logged(), ['1 1', '2 2', '3 3', '4 {}']);
    assert.deepEqual(cut.received, ['1 1', '2 2', '3 3', '4 {}']);
    assert.equal((await readJobState(jobs.redis, cut.job.id))?.outcome, 'cancelled');
  });

  test('a job that others have ended writes nothing more, however many entries come before it hears of that', async () => {
    const [cut, other] = [await Stream.begin(), await Stream.begin()];
    for (const stream of [cut, other]) stream.write('2');
    for (const stream of [cut, other]) await stream.hasReceived(2);
    await jobs.end(cut.job, { outcome: 'cancelled' });
    for (const text of ['3', '4']) {
      other.write(text);
      await other.hasReceived(Number(text));
    }
    const frames = ({ job }: Stream, text: string) => ({
      ...{ jobId: job.id, readers: ['api+'], message: `${job.id} 1 9 \nd"${text}"` },
    });
    const entries: unknown[] = [];
    journal.write(frames(cut, 'late'), (entry) => entries.push(entry));
    assert.deepEqual(entries, [undefined]);
    cut.write('late');
    await eventually(() => assert.equal(cut.lost, 'ended'));
    cut.writer.leave(true);
    other.write('5');
    await other.hasReceived(5);
    assert.equal(await jobs.redis.hlen(journalKeys.head(journal.name)), 1, 'the ended job is forgotten');
    const all = JSON.stringify(await jobs.redis.xrange(journalKeys.entries(journal.name), '-', '+'));
    assert.doesNotMatch(all, /late/);
  });

  test('frames that wait while an entry tells of the end of their job are not written', async () => {
    const [cut, other] = [await Stream.begin(), await Stream.begin()];
    await jobs.end(cut.job, { outcome: 'cancelled' });
    const taken: string[] = [];
    const write = ({ job }: Stream, name: string): void => {
      const message = `${job.id} 1 2 \nd"${name}"`;
      journal.write({ jobId: job.id, readers: ['api+'], message }, (entry) => taken.push(`${name} ${entry}`));
    };
    await jobs.redis.call('CLIENT', 'PAUSE', '100', 'WRITE');
    write(other, 'other');
    // Its entry is on the way.
    await new Promise((resolve) => setTimeout(resolve, 20));
    write(cut, 'cut');
    await eventually(() => assert.deepEqual(taken, ['other 1', 'cut undefined']));
  });

  test('the sweeper finds what a dead worker has published', async () => {
    const stream = await Stream.begin('api+ other+');
    stream.write('2');
    await stream.hasReceived(2);
    await jobs.expireLease(stream.job, 60_000);
    const error = { jobId: stream.job.id, guard: 'abandoned', outcome: 'failed', lines: 'x{}', lineCount: 1 } as const;
    assert.equal((await finish(jobs.redis, { ...error, retentionMs: 0, isCluster: false })).verdict, 'finished');
    assert.deepEqual(await stream.logged(), ['1 1', '2 2', '3 {}']);
  });

  test('jobs that are ended in one call each get their own frames', async () => {
    const some = await Promise.all(
      Array.from({ length: 30 }, (_, index) => Stream.begin(index % 2 ? 'api+ other+' : 'api+')),
    );
    for (const text of ['2', '3']) {
      for (const stream of some) stream.write(text);
      await Promise.all(some.map((stream) => stream.hasReceived(Number(text))));
    }
    for (const { job } of some) void publishedSeq(jobs.redis, { jobId: job.id }).then((seq) => assert.equal(seq, 3));
    await Promise.all(some.map(({ job }) => jobs.end(job, { outcome: 'cancelled' })));
    for (const stream of some) {
      assert.deepEqual(await stream.logged(), ['1 1', '2 2', '3 3', '4 {}']);
      await stream.hasReceived(4);
    }
  });

  test('after Redis has lost the journal the frames go into their logs, and on in a journal of another name', async () => {
    const some = await Promise.all(Array.from({ length: 3 }, () => Stream.begin()));
    const first = journal.name;
    for (const text of ['2', '3', '4']) {
      if (text === '3') await jobs.redis.del(journalKeys.entries(first), journalKeys.head(first));
      for (const stream of some) stream.write(text);
      for (const stream of some) await stream.hasReceived(Number(text));
    }
    assert.notEqual(journal.name, first);
    for (const stream of some) {
      assert.deepEqual((await stream.logged()).slice(0, 3), ['1 1', '2 2', '3 3']);
      assert.equal(await stream.end(), 'finished');
      assert.deepEqual(await stream.logged(), ['1 1', '2 2', '3 3', '4 4', '5 {}']);
      assert.deepEqual(stream.received, await stream.logged());
    }
  });

  /** Redis has lost the last entries of the journal. */
  async function loseEntries(): Promise<void> {
    const { name } = journal;
    await jobs.redis.multi().del(journalKeys.entries(name)).hset(journalKeys.head(name), 'last', '0').exec();
  }

  test('frames that waited while Redis refused an entry are in no journal that the state of their job does not name', async () => {
    const [first, second] = [await Stream.begin(), await Stream.begin()];
    for (const stream of [first, second]) stream.write('2');
    await Promise.all([first.hasReceived(2), second.hasReceived(2)]);
    for (const stream of [first, second]) await stream.writer.flushed();
    await loseEntries();
    await jobs.redis.call('CLIENT', 'PAUSE', '100', 'WRITE');
    first.write('3');
    // Its entry is on the way.
    await new Promise((resolve) => setTimeout(resolve, 30));
    second.write('3');
    await Promise.all([first.hasReceived(3), second.hasReceived(3)]);
    for (const stream of [first, second]) {
      await jobs.end(stream.job, { outcome: 'cancelled' });
      assert.deepEqual(await stream.logged(), ['1 1', '2 2', '3 3', '4 {}']);
    }
  });

  test('a journal is not trimmed by what another one had to keep', async () => {
    const [first, kept] = [await Stream.begin(), await Stream.begin()];
    for (const text of ['2', '3', '4', '5']) {
      first.write(text);
      await first.hasReceived(Number(text));
    }
    await first.writer.flushed();
    kept.write('2');
    await kept.hasReceived(2);
    await kept.writer.close();
    await loseEntries();
    for (const text of ['6', '7']) {
      first.write(text);
      await first.hasReceived(Number(text));
    }
    assert.equal(await entriesOf(journal.name), 1);
    await jobs.end(first.job, { outcome: 'cancelled' });
    assert.deepEqual((await first.logged()).slice(-3), ['6 6', '7 7', '8 {}']);
  });

  test('the frames of a run that could not end its job are kept for whoever does', async () => {
    const [cut, other, last] = [await Stream.begin(), await Stream.begin(), await Stream.begin()];
    cut.write('2');
    await cut.hasReceived(2);
    await cut.writer.close();
    last.write('2');
    await last.hasReceived(2);
    cut.writer.leave(false);
    for (let number = 2; number < 80; number++) {
      other.write(`${number} ${'x'.repeat(4000)}`);
      await other.hasReceived(number);
    }
    await jobs.end(cut.job, { outcome: 'cancelled' });
    assert.deepEqual(await cut.logged(), ['1 1', '2 2', '3 {}']);
  });

  test('an idle journal is empty', async () => {
    const stream = await Stream.begin();
    stream.write('2');
    await stream.hasReceived(2);
    assert.equal(await stream.end(), 'finished');
    stream.writer.leave(true);
    await eventually(async () => assert.equal(await entriesOf(journal.name), 0));
    const next = await Stream.begin();
    next.write('2');
    await next.hasReceived(2);
    assert.equal(await entriesOf(journal.name), 1);
  });

  test('the worker learns of a new reader, whose log has all from then on', async () => {
    const stream = await Stream.begin();
    const told: string[] = [];
    const state = jobKeys.state(stream.job.id);
    const workerId = await jobs.redis.hget(state, 'worker');
    const listener = { readerAdded: (jobId: string) => void told.push(jobId) };
    const inbox = await Inbox.open(handle, workerId as string, listener, log);
    stream.write('2');
    await stream.hasReceived(2);
    for (const _ of [1, 2]) assert.equal(await attach(jobs.redis, stream.job.id, 'new+'), true);
    await eventually(() => assert.deepEqual(told, [stream.job.id, stream.job.id]));
    assert.equal(await jobs.redis.hget(state, 'readers'), 'api+ new+');
    inbox.close();
    stream.writer.logNow();
    await stream.writer.flushed();
    assert.deepEqual(await stream.logged(), ['1 1', '2 2']);
    await eventually(() => assert.deepEqual(arrived, ['1', '2', '2'], 'it tells a new reader to read the log'));
    stream.write('3');
    await stream.hasReceived(3);
    const [[, fields]] = (await jobs.redis.xrevrange(journalKeys.entries(journal.name), '+', '-', 'COUNT', 1)) as [
      [string, string[]],
    ];
    assert.deepEqual(
      fields.filter((_, index) => index % 2 === 0),
      ['api+', 'new+'],
    );
  });

  test('entries go once all logs have their frames', async () => {
    const stream = await Stream.begin();
    for (let number = 2; number < 100; number++) {
      stream.write(`${number} ${'x'.repeat(4000)}`);
      await stream.hasReceived(number);
      if (number % 20 === 0) await stream.writer.flushed();
    }
    const left = await entriesOf(journal.name);
    assert.ok(left < 45, `${left} entries are left`);
    assert.equal(await stream.end(), 'finished');
    for (const { writer } of streams) writer.leave(true);
    await journal.close();
    assert.equal(await jobs.redis.exists(journalKeys.entries(journal.name), journalKeys.head(journal.name)), 0);
  });

  test('more than 64 Ki characters are not in the journal only', async () => {
    const stream = await Stream.begin();
    for (const number of [2, 3, 4]) {
      stream.write('x'.repeat(30_000));
      await stream.hasReceived(number);
    }
    assert.equal((await stream.logged()).length, 4);
  });

  test('while a process of the release before runs, frames go into their logs alone', async () => {
    writeFor([{ oldest: 1, newest: 1 }]);
    try {
      const [stream, old] = [await Stream.begin(), await Stream.begin('api+ api')];
      stream.write('2');
      await stream.hasReceived(2);
      assert.deepEqual(await stream.logged(), ['1 1', '2 2']);
      writeFor([{ oldest: 1, newest: 2 }]);
      for (const text of ['2', '3']) old.write(text);
      await old.hasReceived(3);
      assert.deepEqual(await old.logged(), ['1 1', '2 2', '3 3'], 'a reader that takes one batch a message');
      assert.equal(await entriesOf(journal.name), 0);
    } finally {
      writeFor([]);
    }
  });
});

describe('writeJournal', () => {
  const entry = (number: number, more = {}) => ({
    ...{ journal: 'repeated', number, oldestNeeded: 1, jobId: 'job', forgotten: [] },
    ...{ messages: new Map([['api+', [`job 1 ${number} \nd"x"`]]]), ...more },
  });

  test('an entry that arrives twice is written and published once, and one after a gap is refused', async () => {
    const write = (number: number, more = {}) => writeJournal(jobs.redis, entry(number, more));
    assert.deepEqual([await write(1), await write(1), await write(2)], [[], [], []]);
    assert.equal(await write(4), undefined);
    await eventually(() => assert.deepEqual(received.get('job'), ['1 "x"', '2 "x"']));
    await jobs.redis.hset(journalKeys.head('repeated'), 'gone', '1');
    const messages = new Map([['api+', ['gone 1 1 \nd"x"', 'job 1 3 \nd"x"', 'gone 1 2 \nd"x"']]]);
    assert.deepEqual(await write(3, { messages }), ['gone']);
    assert.deepEqual(await write(3, { messages }), ['gone'], 'a repeat gets the same reply');
    assert.deepEqual(await write(4, { messages: new Map([['api+', ['gone 1 3 \nd"x"']]]) }), ['gone']);
    assert.deepEqual(await write(5, { forgotten: ['gone'], messages: new Map([['api+', ['job 1 4 \nd"x"']]]) }), []);
    await eventually(() => assert.deepEqual(received.get('job'), ['1 "x"', '2 "x"', '3 "x"', '4 "x"']));
    assert.equal(received.has('gone'), false);
    assert.equal(await entriesOf('repeated'), 4);
  });
});
