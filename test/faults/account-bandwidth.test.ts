import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { RecentAccounts } from '../../shared/runtime/collections.ts';
import { eventually } from '../support/eventually.ts';
import { JobFixture } from '../support/faults/job-fixture.ts';
import { loadProduct } from '../support/gateway.ts';

const { Blobs } = await loadProduct<typeof import('../../shared/blobs/blobs.ts')>('shared/blobs/blobs');
const { parseBatch } = await loadProduct<typeof import('../../shared/jobs/append.ts')>('shared/jobs/append');
const { AnswerReader } =
  await loadProduct<typeof import('../../api/replies/answer-reader.ts')>('api/replies/answer-reader');
const { jobKeys } = await loadProduct<typeof import('../../shared/redis/keys.ts')>('shared/redis/keys');
const { FrameWriter } =
  await loadProduct<typeof import('../../workers/run/frame-writer.ts')>('workers/run/frame-writer');
const { StoredAnswer } =
  await loadProduct<typeof import('../../api/replies/stored-answer.ts')>('api/replies/stored-answer');

let jobs: JobFixture;
let folder: string;
let blobs: Awaited<ReturnType<typeof Blobs.open>>;

before(async () => {
  jobs = await JobFixture.start();
  folder = await mkdtemp(join(tmpdir(), 'sluice-test-replays-'));
  blobs = await Blobs.open(folder);
});

after(async () => {
  await jobs?.stop();
  await rm(folder, { recursive: true, force: true });
});

/** A bandwidth that notes what it is asked for, and lets the account go on at that time, in ms of `performance.now()`. */
function noted(resumeAt = 0) {
  const taken: [account: string, characters: number][] = [];
  const take = (account: string, characters: number): number => {
    taken.push([account, characters]);
    return resumeAt;
  };
  return { taken, accounts: new RecentAccounts(), take };
}

test('tokens of an account tell that it is served, and are not taken of its bandwidth', {
  timeout: 10_000,
}, async (t) => {
  const job = await jobs.create();
  await jobs.take(job);
  const bandwidth = noted();
  const writer = new FrameWriter({
    ...{ redis: jobs.redis, blobs: blobs.of(job.account), isCluster: false, jobId: job.id, attempt: 1, lastSeq: 0 },
    ...{ lifetimeMs: 60_000, onConfirmed: () => undefined, onLost: () => undefined, account: job.account, bandwidth },
  });
  t.after(() => writer.close());
  assert.equal(bandwidth.accounts.hasOthers('another', 5000), false);
  assert.equal(writer.write({ type: 'delta', text: '"token"' }), true);
  assert.equal(bandwidth.accounts.hasOthers('another', 5000), true);
  assert.equal(bandwidth.accounts.hasOthers(job.account, 5000), false);
  assert.deepEqual(bandwidth.taken, []);
  const large = JSON.stringify('x'.repeat(5000));
  writer.write({ type: 'delta', text: large });
  assert.deepEqual(bandwidth.taken, [[job.account, large.length]]);
  await writer.flushed();
});

test('a page of a log is read once its account may read more, or the reader has left', {
  timeout: 10_000,
}, async () => {
  const job = await jobs.create();
  await jobs.take(job);
  for (let seq = 1; seq <= 20; seq++) await jobs.write(job, 1, seq, ['x'.repeat(100)]);
  const bandwidth = noted(performance.now() + 20_000);
  const stored = new StoredAnswer(job, { redis: jobs.redis, blobs, bandwidth });
  const first = await stored.read(0);
  const characters = first.entries.reduce((sum, entry) => sum + entry.length, 0);
  assert.equal(
    bandwidth.taken.reduce((sum, [account, each]) => sum + (account === job.account ? each : 0), 0),
    characters,
  );
  const next = stored.read(16);
  let isRead = false;
  void next.then(() => {
    isRead = true;
  });
  await delay(50);
  assert.equal(isRead, false);
  stored.close();
  assert.equal((await next).entries.length, 4);
});

test('the log of an ended answer stays while its reader may read no more of it', { timeout: 10_000 }, async (t) => {
  const job = await jobs.create();
  await jobs.take(job);
  for (let seq = 1; seq <= 20; seq++) await jobs.write(job, 1, seq, [`${seq}`]);
  await jobs.end(job, { attempt: 1 });
  const bandwidth = noted(performance.now() + 20_000);
  const context = { redis: jobs.redis, blobs, bandwidth, log: console as never };
  let frames = 0;
  const sink = { frame: () => void frames++, flush: () => true, tick: () => undefined, fail: assert.fail };
  const reader = new AnswerReader(job, context, { sink, onClose: () => undefined });
  t.after(() => reader.close());
  reader.begin();
  reader.catchUp();
  await eventually(async () => assert.equal(frames, 16, 'a page'));
  const log = jobKeys.log(job.id);
  assert.equal(await jobs.redis.pexpire(log, 5000), 1);
  reader.tick(Date.now());
  await eventually(async () => assert.ok((await jobs.redis.pttl(log)) > 40_000, 'it is not kept'));
  assert.equal(frames, 16);
});

test('frames in files count as far as they are not the end of an answer', { timeout: 10_000 }, async () => {
  const text = JSON.stringify('x'.repeat(100_000));
  const record = JSON.stringify({ blob: await blobs.of('account').put(text), bytes: text.length });
  const bandwidth = noted();
  const stored = new StoredAnswer({ id: '1'.repeat(32), account: 'account' }, { redis: jobs.redis, blobs, bandwidth });
  const expected: number[] = [];
  const batch = parseBatch(`1 2 vendor\nD${record}\nE${record}`);
  const whole = await stored.whole(batch, { expect: (bytes) => void expected.push(bytes) });
  assert.ok(whole !== undefined && 'frames' in whole);
  assert.deepEqual(
    whole.frames.map((frame) => frame.text),
    [text, text],
  );
  assert.deepEqual(expected, [text.length, text.length]);
  assert.deepEqual(bandwidth.taken, [['account', text.length]]);
});
