import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, type TestContext, test } from 'node:test';
import { Redis } from 'ioredis';
import type { ReaderContext } from '../../api/replies/answer-reader.ts';
import type { FrameReceiver } from '../../api/replies/frame-receiver.ts';
import type { ApiError } from '../../shared/errors.ts';
import type { Frame } from '../../shared/jobs/append.ts';
import type { JobIdentity, Served } from '../../shared/jobs/job-state.ts';
import { eventually } from '../support/eventually.ts';
import { JobFixture } from '../support/faults/job-fixture.ts';
import { loadProduct, TestGateway } from '../support/gateway.ts';
import { unlimitedBandwidth } from '../support/unlimited-bandwidth.ts';

const { AnswerReader } =
  await loadProduct<typeof import('../../api/replies/answer-reader.ts')>('api/replies/answer-reader');
const { AnswerReaders } =
  await loadProduct<typeof import('../../api/replies/answer-readers.ts')>('api/replies/answer-readers');
const { jobKeys } = await loadProduct<typeof import('../../shared/redis/keys.ts')>('shared/redis/keys');
const { Blobs } = await loadProduct<typeof import('../../shared/blobs/blobs.ts')>('shared/blobs/blobs');
const { servedText } = await loadProduct<typeof import('../../shared/jobs/job-state.ts')>('shared/jobs/job-state');
const { frameLine } = await loadProduct<typeof import('../../shared/jobs/append.ts')>('shared/jobs/append');

let jobs: JobFixture;

const unheard = { onClose: () => undefined, onServed: undefined };

before(async () => {
  jobs = await JobFixture.start();
});

after(() => jobs?.stop());

/** Dependencies of readers, whose accounts may read as fast as they can. */
function contextOf(more: Partial<ReaderContext> = {}): ReaderContext {
  return {
    redis: jobs.redis,
    blobs: undefined as never,
    bandwidth: unlimitedBandwidth,
    log: console as never,
    ...more,
  };
}

/** Gathers the frames of an answer; `whole` resolves with them once the last has come. */
function openSink(isFull: () => boolean = () => false) {
  const frames: Frame[] = [];
  let resolve: (frames: Frame[]) => void = () => undefined;
  const whole = new Promise<Frame[]>((resolved) => {
    resolve = resolved;
  });
  const sink: FrameReceiver = {
    frame: (frame) => {
      frames.push(frame);
      if (frame.type === 'end') resolve(frames);
    },
    flush: () => !isFull(),
    tick: () => undefined,
    fail: (error) => assert.fail(error),
  };
  return { sink, frames, whole };
}

function sequence(frames: readonly Frame[]): number[] {
  return frames.map(({ seq }) => seq);
}

describe('AnswerReader', () => {
  function openReader(job: JobIdentity, isFull?: () => boolean, hasBegun = true) {
    const { sink, frames, whole } = openSink(isFull);
    const context = contextOf();
    const served: Served[] = [];
    const onServed = (who: Served): void => void served.push(who);
    const reader = new AnswerReader(job, context, { sink, ...unheard, onServed });
    if (hasBegun) reader.begin();
    return { reader, frames, whole, served };
  }

  test('AnswerReader reads missed frames from the log, and delivers no frame twice', async () => {
    const job = await jobs.create();
    await jobs.take(job);
    const { reader, frames, whole } = openReader(job);
    await jobs.write(job, 1, 1, ['a']);
    reader.receive('1 1\nd"a"', 0);
    reader.receive('1 1\nd"a"', 0);
    await jobs.write(job, 1, 2, ['b']);
    await jobs.write(job, 1, 3, ['c', 'd']);
    assert.deepEqual(sequence(frames), [1]);
    // The live copy of frame 2 was lost.
    reader.receive('1 3\nd"c"\nd"d"', 0);
    await jobs.end(job, { attempt: 1 });
    reader.receive('1 5\ne{}', 0);
    assert.deepEqual(sequence(await whole), [1, 2, 3, 4, 5]);
  });

  test('AnswerReader delivers nothing before begin, and then earlier frames from the log, each once', async () => {
    const job = await jobs.create();
    await jobs.take(job);
    const { reader, frames, whole } = openReader(job, undefined, false);
    await jobs.write(job, 1, 1, ['a', 'b']);
    reader.receive('1 1\nd"a"\nd"b"', 0);
    reader.catchUp();
    reader.resume();
    for (let count = 0; count < 5; count++) await jobs.redis.ping();
    assert.deepEqual(frames, []);
    reader.begin();
    await jobs.end(job, { attempt: 1 });
    reader.receive('1 3\ne{}', 0);
    assert.deepEqual(sequence(await whole), [1, 2, 3]);
  });

  test('AnswerReader keeps live frames that come before it begins, and delivers them without reading the log', async () => {
    const job = await jobs.create();
    const { reader, frames } = openReader(job, undefined, false);
    // None of them is in the log.
    reader.receive('1 1\nd"a"\nd"b"', 0);
    reader.receive('1 1\nd"a"\nd"b"', 0);
    reader.receive('1 3\nd"c"', 0);
    assert.deepEqual(frames, []);
    reader.begin();
    assert.deepEqual(sequence(frames), [1, 2, 3]);
    reader.close();
  });

  test('AnswerReader reads from the log what is too long to be kept before it begins, and what follows a gap', async () => {
    for (const early of [[`1 1\nd"${'a'.repeat(70_000)}"`], ['1 2\nd"b"'], ['1 1\nd"a"', '1 3\nd"c"']]) {
      const job = await jobs.create();
      await jobs.take(job);
      const { reader, frames, whole } = openReader(job, undefined, false);
      for (const batch of early) reader.receive(batch, 0);
      for (const [index, text] of ['a', 'b', 'c'].entries()) await jobs.write(job, 1, index + 1, [text]);
      await jobs.end(job, { attempt: 1 });
      reader.begin();
      assert.ok(frames.length <= 1, `${frames.length} frames`);
      assert.deepEqual(sequence(await whole), [1, 2, 3, 4]);
    }
  });

  test('AnswerReader lets nothing ping before it begins: the head of the answer is not decided', async () => {
    const job = await jobs.create();
    const { sink } = openSink();
    const ticks: number[] = [];
    const pinged = { ...sink, tick: (now: number) => void ticks.push(now) };
    const context = contextOf();
    const reader = new AnswerReader(job, context, { sink: pinged, ...unheard });
    reader.tick(1);
    reader.begin();
    reader.tick(2);
    assert.deepEqual(ticks, [2]);
    reader.close();
  });

  test('AnswerReader tells who serves before the first frame, and once for all that follow', async () => {
    const first = { vendor: 'first vendor', calls: 1, model: undefined, cost: undefined };
    const second = { vendor: 'second', calls: 3, model: 'maker/stand-in 2', cost: undefined };
    const job = await jobs.create();
    await jobs.take(job);
    const { reader, frames, whole, served } = openReader(job);
    reader.receive(`1 1 ${servedText(first)}\nd"a"`, 0);
    assert.deepEqual([served, sequence(frames)], [[first], [1]]);
    await jobs.write(job, 1, 1, ['a'], { served: servedText(first) });
    await jobs.write(job, 1, 2, ['b', 'c'], { served: servedText(first) });
    // Another taking of the job, which nothing was out of yet, may have found another vendor: read from the log.
    await jobs.write(job, 1, 4, ['d'], { served: servedText(second) });
    await jobs.end(job, { attempt: 1, served: servedText(second) });
    reader.catchUp();
    assert.deepEqual(sequence(await whole), [1, 2, 3, 4, 5]);
    assert.deepEqual(served, [first, second]);
  });

  test('AnswerReader reads little more of a long log than a slow client takes', async () => {
    const job = await jobs.create();
    await jobs.take(job);
    for (let seq = 1; seq <= 200; seq++) await jobs.write(job, 1, seq, ['a']);
    await jobs.end(job, { attempt: 1 });
    // Each read of the log is seen, and how much it brought.
    let read = 0;
    const redis = new Proxy(jobs.redis, {
      get: (target, name) => {
        const value = Reflect.get(target, name);
        if (name !== 'xrange') return typeof value === 'function' ? value.bind(target) : value;
        return async (...args: Parameters<typeof target.xrange>) => {
          const entries = await target.xrange(...args);
          read += entries.length;
          return entries;
        };
      },
    });
    const { sink, frames, whole } = openSink(() => true);
    const context = contextOf({ redis });
    const reader = new AnswerReader(job, context, { sink, ...unheard });
    reader.begin();
    reader.catchUp();
    const drain = setInterval(() => reader.resume(), 1);
    assert.equal((await whole).length, 201);
    clearInterval(drain);
    assert.deepEqual(sequence(frames), sequence([...frames].sort((a, b) => a.seq - b.seq)));
    assert.equal(read < 2 * 201 + 16, true, `${read} batches were read to deliver 201`);
  });

  test('AnswerReader drops live frames while its client is slow, and catches up from the log', async () => {
    const job = await jobs.create();
    await jobs.take(job);
    let isFull = true;
    const { reader, frames, whole } = openReader(job, () => isFull);
    await jobs.write(job, 1, 1, ['a']);
    reader.receive('1 1\nd"a"', 0);
    for (let seq = 2; seq < 60; seq++) {
      await jobs.write(job, 1, seq, ['b']);
      reader.receive(`1 ${seq}\nd"b"`, 0);
    }
    await jobs.end(job, { attempt: 1 });
    reader.receive('1 60\ne{}', 0);
    assert.deepEqual(sequence(frames), [1]);
    isFull = false;
    reader.resume();
    assert.deepEqual(
      sequence(await whole),
      Array.from({ length: 60 }, (_, index) => index + 1),
    );
  });
});

describe('AnswerReader of a log that lacks the last moment', () => {
  /** A client whose calls of a command, or a script, run at once, but whose replies wait until they are let go. */
  function holding(name: string, isHeld: () => boolean = () => true) {
    const held: (() => void)[] = [];
    const calls = new EventEmitter();
    const redis = new Proxy(jobs.redis, {
      get(target, key) {
        const value = Reflect.get(target, key);
        if (typeof value !== 'function') return value;
        if (key !== name || !isHeld()) return value.bind(target);
        return async (...args: unknown[]) => {
          const reply = await value.apply(target, args);
          await new Promise<void>((resolve) => {
            held.push(resolve);
            calls.emit('call');
          });
          return reply;
        };
      },
    });
    const letGo = (): void => {
      for (const resolve of held.splice(0)) resolve();
    };
    return { redis, calls, letGo };
  }

  test('AnswerReader delivers what comes while it looks whether anything follows, without waiting for more', async () => {
    const job = await jobs.create();
    await jobs.take(job);
    await jobs.write(job, 1, 1, ['a']);
    const { sink, frames, whole } = openSink();
    const { redis, calls, letGo } = holding('sluice:read-progress');
    const reader = new AnswerReader(job, contextOf({ redis }), { sink, ...unheard });
    reader.begin();
    reader.receive('1 1\nd"a"', 0);
    const asked = once(calls, 'call');
    reader.catchUp();
    await asked;
    reader.receive('1 2\nd"b"', 0);
    reader.receive('1 3\ne{}', 0);
    assert.deepEqual(sequence(frames), [1]);
    letGo();
    assert.deepEqual(sequence(await whole), [1, 2, 3]);
  });

  test('AnswerReader asks the worker once for frames that it missed, and reads them when they are there', async () => {
    const job = await jobs.create();
    await jobs.take(job);
    await jobs.write(job, 1, 1, ['a'], { journal: 'sluice:{journal}:worker-1 1' });
    const { sink, frames, whole } = openSink();
    const { redis, calls, letGo } = holding('sluice:attach');
    let times = 0;
    calls.on('call', () => {
      times++;
      letGo();
    });
    const told = new Redis(jobs.server.url);
    const [channel] = [`${jobKeys.inboxPrefix(job.id)}worker`];
    const messages: string[] = [];
    await told.subscribe(channel);
    told.on('message', (_, message) => messages.push(message));
    const context = contextOf({ redis, readerId: 'api+' });
    const reader = new AnswerReader(job, context, { sink, ...unheard });
    reader.begin();
    reader.receive('1 1\nd"a"', 0);
    // Frames 2 and 3 did not arrive, and are in the journal only.
    reader.receive('1 4\nd"d"', 0);
    await eventually(() => assert.deepEqual(messages, [`reader ${job.id}`]));
    assert.equal(await jobs.redis.hget(jobKeys.state(job.id), 'readers'), 'api-reader api+');
    reader.receive('1 5\nd"e"', 0);
    assert.deepEqual(sequence(frames), [1]);
    await jobs.write(job, 1, 2, ['b', 'c', 'd', 'e']);
    reader.receive('1 5\nd"e"', 0);
    await eventually(() => assert.deepEqual(sequence(frames), [1, 2, 3, 4, 5]));
    reader.receive('1 6\ne{}', 0);
    assert.deepEqual(sequence(await whole), [1, 2, 3, 4, 5, 6]);
    assert.ok(times <= 2, `${times} calls`);
    told.disconnect();
  });

  test('AnswerReader reads once more if the word of the worker comes before the reply that it makes obsolete', async () => {
    const job = await jobs.create();
    await jobs.take(job);
    await jobs.write(job, 1, 1, ['a'], { journal: 'sluice:{journal}:worker-1 1' });
    const { sink, frames } = openSink();
    let reads = 0;
    const { redis, calls, letGo } = holding('xrange', () => ++reads === 2);
    const context = contextOf({ redis, readerId: 'api+' });
    const reader = new AnswerReader(job, context, { sink, ...unheard });
    const second = once(calls, 'call');
    reader.begin();
    reader.receive('1 4\nd"d"', 0);
    await second;
    assert.deepEqual(sequence(frames), [1]);
    await jobs.write(job, 1, 2, ['b', 'c', 'd', 'e']);
    reader.receive('1 5\nd"e"', 0);
    letGo();
    await eventually(() => assert.deepEqual(sequence(frames), [1, 2, 3, 4, 5]), 2000);
    reader.close();
  });

  test('AnswerReader takes of a batch what it does not have yet, live and from the log', async () => {
    const job = await jobs.create();
    await jobs.take(job);
    const { sink, whole } = openSink();
    const context = contextOf();
    const reader = new AnswerReader(job, context, { sink, ...unheard });
    reader.begin();
    reader.receive('1 1\nd"a"', 0);
    reader.receive('1 1\nd"a"\nd"b"', 0);
    await jobs.write(job, 1, 1, ['a', 'b', 'c', 'd']);
    reader.catchUp();
    await jobs.end(job, { attempt: 1 });
    reader.receive('1 3\nd"c"\nd"d"\ne{}', 0);
    assert.deepEqual(sequence(await whole), [1, 2, 3, 4, 5]);
  });
});

describe('AnswerReader with blobs', () => {
  /** Reads a job with one frame, whose text is that blob; resolves with its text, or `lost`. */
  async function read(blobs: Awaited<ReturnType<typeof Blobs.open>>, blob: string): Promise<string> {
    const job = await jobs.create();
    await jobs.take(job);
    const lines = frameLine('delta', JSON.stringify({ blob, bytes: 9 }), true);
    await jobs.append({
      ...{ jobId: job.id, attempt: 1, firstSeq: 1, lastSeq: 1, lines, hasDelta: true, served: '' },
      ...{ lifetimeMs: 60_000, isCluster: false },
    });
    const heard = new EventEmitter();
    const outcome = once(heard, 'outcome');
    const sink: FrameReceiver = {
      frame: (frame) => heard.emit('outcome', frame.text),
      flush: () => true,
      tick: () => undefined,
      fail: ({ code }) => heard.emit('outcome', code),
    };
    const reader = new AnswerReader(job, contextOf({ blobs }), { sink, ...unheard });
    reader.begin();
    reader.catchUp();
    const [result] = await outcome;
    reader.close();
    return result as string;
  }

  test("AnswerReader delivers the text of a blob, and resume_expired when the blob is swept or another account's", {
    timeout: 10_000,
  }, async () => {
    const folder = await mkdtemp(join(tmpdir(), 'sluice-test-blobs-'));
    try {
      const blobs = await Blobs.open(folder);
      const blob = await blobs.of('account').put('"content"');
      assert.equal(await read(blobs, blob), '"content"');
      await blobs.of('account').delete(blob);
      assert.equal(await read(blobs, blob), 'resume_expired');
      const anothers = await blobs.of('another account').put('"content"');
      assert.equal(await read(blobs, anothers), 'resume_expired');
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});

describe('AnswerReader with an answer that cannot be shown', () => {
  /** A Redis that counts the reads of logs. */
  function countReads(counted: { reads: number }): typeof jobs.redis {
    return new Proxy(jobs.redis, {
      get: (target, name) => {
        const value = Reflect.get(target, name);
        if (name === 'xrange') counted.reads++;
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
  }

  /** Reads a job's log until its sink is told of an error, or the time is over. */
  async function readBroken(job: JobIdentity, sink: Partial<FrameReceiver>, isCreator = false, blobs?: unknown) {
    const heard = new EventEmitter();
    const told: ApiError[] = [];
    const failed = once(heard, 'failed');
    const counted = { reads: 0 };
    const reader = new AnswerReader(
      job,
      contextOf({ redis: countReads(counted), blobs: blobs as never, log: { error: () => undefined } as never }),
      {
        sink: {
          ...{ frame: () => undefined, flush: () => true, tick: () => undefined },
          fail: (error) => {
            told.push(error);
            heard.emit('failed');
          },
          ...sink,
        },
        ...unheard,
        isCreator,
      },
    );
    reader.begin();
    return { reader, told, failed, counted };
  }

  async function threeFrames(): Promise<JobIdentity> {
    const job = await jobs.create();
    await jobs.take(job);
    await jobs.write(job, 1, 1, ['a', 'b', 'c']);
    await jobs.end(job, { attempt: 1 });
    return job;
  }

  test('AnswerReader ends with one error when a frame cannot be folded, live or from the log, and does not read again', async () => {
    const job = await threeFrames();
    const frame = ({ seq }: Frame): void => {
      if (seq === 2) throw new TypeError('no such choice');
    };
    const fromLog = await readBroken(job, { frame });
    fromLog.reader.catchUp();
    await fromLog.failed;
    const live = await readBroken(job, { frame });
    live.reader.receive('1 1\nd"a"\nd"b"', 0);
    for (const { reader, told, counted } of [fromLog, live]) {
      const { reads } = counted;
      for (let round = 1; round <= 20; round++) reader.tick(Date.now() + round * 10_000);
      for (let count = 0; count < 5; count++) await jobs.redis.ping();
      assert.deepEqual([told.map(({ code }) => code), counted.reads - reads], [['server_error'], 0]);
      assert.equal(reader.failure?.code, 'server_error');
    }
  });

  test('AnswerReader ends with an error when the flush or the tick of its sink throws', async () => {
    const job = await threeFrames();
    const broken = (): never => {
      throw new Error('broken');
    };
    const flushing = await readBroken(job, { flush: broken });
    flushing.reader.catchUp();
    await flushing.failed;
    const ticking = await readBroken(job, { tick: broken });
    ticking.reader.tick(Date.now());
    assert.deepEqual([flushing.told.length, ticking.told.length], [1, 1]);
  });

  test('AnswerReader ends with an error when a frame is of an unknown kind', async () => {
    const job = await jobs.create();
    await jobs.take(job);
    await jobs.append({
      ...{ jobId: job.id, attempt: 1, firstSeq: 1, lastSeq: 1, lines: 'z{}', hasDelta: true, served: '' },
      ...{ lifetimeMs: 60_000, isCluster: false },
    });
    const fromLog = await readBroken(job, {});
    fromLog.reader.catchUp();
    await fromLog.failed;
    const live = await readBroken(job, {});
    live.reader.receive('1 1\nz{}', 0);
    assert.deepEqual([fromLog.told.length, live.told.length], [1, 1]);
  });

  test('AnswerReader retries after a pause, not at once, when a blob of a long log cannot be read', async (t) => {
    t.mock.timers.enable({ apis: ['Date'], now: Date.now() });
    const job = await jobs.create();
    await jobs.take(job);
    const lines = frameLine('delta', JSON.stringify({ blob: 'b', bytes: 9 }), true);
    await jobs.append({
      ...{ jobId: job.id, attempt: 1, firstSeq: 1, lastSeq: 1, lines, hasDelta: true, served: '' },
      ...{ lifetimeMs: 60_000, isCluster: false },
    });
    for (let seq = 2; seq <= 40; seq++) await jobs.write(job, 1, seq, ['a']);
    const whole = new EventEmitter();
    const last = once(whole, 'last');
    let isBroken = true;
    const bytes = async (): Promise<Buffer> => {
      if (isBroken) throw new Error('the storage does not answer');
      return Buffer.from('"a"');
    };
    const blobs = { ofRecords: () => ({ bytes }) };
    const { reader, counted } = await readBroken(
      job,
      { frame: ({ seq }) => seq === 40 && whole.emit('last') },
      false,
      blobs,
    );
    reader.catchUp();
    for (let count = 0; count < 30; count++) await jobs.redis.ping();
    assert.equal(counted.reads, 1);
    isBroken = false;
    t.mock.timers.tick(1000);
    reader.tick(Date.now());
    await last;
  });

  test('AnswerReader reads an ended job whose log lost its end twice, and fails with resume_expired', async () => {
    const job = await threeFrames();
    await jobs.redis.xtrim(jobKeys.log(job.id), 'MAXLEN', 0);
    const { reader, told, failed, counted } = await readBroken(job, {});
    reader.catchUp();
    await failed;
    assert.deepEqual([told[0]?.code, counted.reads], ['resume_expired', 2]);
  });

  test('AnswerReader reads a job that ended behind its cursor, as after a failover, twice, and fails with resume_expired', async () => {
    const job = await jobs.create();
    await jobs.take(job);
    await jobs.write(job, 1, 1, ['a']);
    await jobs.end(job, { attempt: 1 });
    const { reader, told, failed, counted } = await readBroken(job, {});
    reader.receive('1 1\nd"a"\nd"b"\nd"c"', 0);
    reader.catchUp();
    await failed;
    assert.deepEqual([told[0]?.code, counted.reads], ['resume_expired', 2]);
  });

  test('AnswerReader fails with 503 for the request that made a lost job, and with 410 for later readers', async () => {
    const codes: (string | undefined)[] = [];
    for (const isCreator of [true, false]) {
      const { reader, told, failed } = await readBroken(jobs.identity(), {}, isCreator);
      reader.catchUp();
      await failed;
      codes.push(told[0]?.code);
    }
    assert.deepEqual(codes, ['service_unavailable', 'resume_expired']);
  });
});

describe('AnswerReaders', () => {
  /** A process's readers with one that has heard nothing of the job's two frames; resolves with their numbers. */
  async function missEverything(
    t: TestContext,
    hear: (readers: InstanceType<typeof AnswerReaders>) => void,
  ): Promise<number[]> {
    t.mock.timers.enable({ apis: ['setInterval', 'Date'], now: Date.now() });
    const job = await jobs.create();
    const readers = new AnswerReaders(contextOf());
    try {
      const { sink, whole } = openSink();
      readers.open(job, sink).begin();
      await jobs.take(job);
      await jobs.write(job, 1, 1, ['a']);
      await jobs.end(job, { attempt: 1 });
      hear(readers);
      return sequence(await whole);
    } finally {
      readers.close();
    }
  }

  test('AnswerReaders reads the log when a lost subscription is restored', { timeout: 10_000 }, async (t) => {
    assert.deepEqual(await missEverything(t, (readers) => readers.resubscribed()), [1, 2]);
  });

  test('AnswerReaders reads the log after 5 s of silence, since a lost last frame leaves no gap', {
    timeout: 10_000,
  }, async (t) => {
    assert.deepEqual(await missEverything(t, () => t.mock.timers.tick(5500)), [1, 2]);
  });

  test('AnswerReaders reads the log after some silence also when the clock of its host was put back by an hour', {
    timeout: 10_000,
  }, async (t) => {
    const frames = await missEverything(t, () => {
      const now = Date.now;
      t.mock.method(Date, 'now', () => now() - 3_600_000);
      t.mock.timers.tick(6500);
    });
    assert.deepEqual(frames, [1, 2]);
  });
});

describe('AnswerReaders before the job exists', () => {
  test('AnswerReaders waits while a job does not exist yet, and fails when an existing job has no log', {
    timeout: 10_000,
  }, async () => {
    const readers = new AnswerReaders(contextOf());
    try {
      const losses = new EventEmitter();
      const lost = once(losses, 'lost');
      let isLost = false;
      losses.on('lost', () => {
        isLost = true;
      });
      const reader = readers.open(
        { id: 'f'.repeat(32), account: 'account' },
        {
          frame: () => undefined,
          flush: () => true,
          tick: () => undefined,
          fail: () => losses.emit('lost'),
        },
      );
      readers.resubscribed();
      // The reader's look would be on the same connection, and over when these are answered.
      for (let count = 0; count < 5; count++) await jobs.redis.ping();
      assert.equal(isLost, false);
      reader.begin();
      reader.catchUp();
      await lost;
    } finally {
      readers.close();
    }
  });
});

describe('a gateway at rest', () => {
  test('the gateway delivers every frame of a new job live, without a read of its log', async () => {
    const gateway = await TestGateway.start({ redisUrl: jobs.server.url });
    try {
      const client = gateway.client();
      const readLogs = async (): Promise<number> =>
        Number(/^cmdstat_xrange:calls=(\d+)/m.exec(await jobs.redis.info('commandstats'))?.[1] ?? 0);
      const read = async (): Promise<number> => {
        const before = await readLogs();
        for (let round = 0; round < 10; round++) {
          const messages = [{ role: 'user' as const, content: 'WORDS:3' }];
          const stream = await client.chat.completions.create({ model: 'sandbox-chat', messages, stream: true });
          for await (const _ of stream);
          await client.chat.completions.create({ model: 'sandbox-chat', messages });
        }
        return (await readLogs()) - before;
      };
      assert.equal(await read(), 0, 'no frame had to be read from a log');
    } finally {
      await gateway.stop();
    }
  });
});
