import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { eventually } from '../../support/eventually.ts';
import { ChatTimes, percentile } from '../../support/faults/chat-times.ts';
import { readJournal } from '../../support/faults/checker.ts';
import { isSoak } from '../../support/faults/load.ts';
import { TestGateway } from '../../support/gateway.ts';

const videos = isSoak ? 500 : 24;
const durationMs = isSoak ? 180_000 : 20_000;
/** How much slower chat may be while videos are made. */
const maxTimes = 2;
/** Chats before and meanwhile, and how long their caller rests after each: only the soak holds their times against each other. */
const chats = isSoak
  ? { warmUp: 300, idle: 3000, busy: 300, restMs: 0 }
  : { warmUp: 0, idle: 50, busy: 50, restMs: 50 };

interface Video {
  readonly id: string;
  readonly status: string;
  readonly progress: number;
  readonly error: { readonly code: string } | null;
}

async function create(gateway: TestGateway, user: string): Promise<string> {
  const sandbox = { video: { duration_ms: durationMs } };
  const request = { model: 'sandbox-video', prompt: 'A sea otter', seconds: '4', size: '1280x720', user, sandbox };
  const answer = await gateway.fetch('/v1/videos', { method: 'POST', body: JSON.stringify(request) });
  const text = await answer.text();
  assert.equal(answer.status, 200, text);
  const { id, status } = JSON.parse(text) as Video;
  assert.match(id, /^video_/);
  assert.match(status, /^(queued|in_progress)$/);
  return id;
}

/** Creates all of them, a few at a time; answers their ids. */
async function createAll(gateway: TestGateway): Promise<string[]> {
  const ids: string[] = [];
  let next = 0;
  const one = async (): Promise<void> => {
    while (next < videos) {
      const index = next++;
      ids[index] = await create(gateway, `video ${index}`);
    }
  };
  await Promise.all(Array.from({ length: 10 }, one));
  return ids;
}

/** Reads videos, and sees that none is less far than it was. */
class Progress {
  readonly #gateway: TestGateway;
  readonly #seen = new Map<string, number>();

  constructor(gateway: TestGateway) {
    this.#gateway = gateway;
  }

  async read(id: string): Promise<Video> {
    const answer = await this.#gateway.fetch(`/v1/videos/${id}`);
    assert.equal(answer.status, 200, await answer.clone().text());
    const video = (await answer.json()) as Video;
    const before = this.#seen.get(id) ?? 0;
    assert.ok(Number.isInteger(video.progress), `the progress of ${id} is ${video.progress}`);
    assert.ok(video.progress >= before, `${id} went back from ${before} to ${video.progress}`);
    this.#seen.set(id, video.progress);
    return video;
  }

  /** Reads some of the videos again and again, for so long. */
  async watch(ids: readonly string[], ms: number): Promise<void> {
    for (const until = Date.now() + ms; Date.now() < until; await delay(2000)) {
      for (const id of ids) await this.read(id);
    }
  }

  async completed(id: string, ms: number): Promise<Video> {
    return await eventually(async () => {
      const video = await this.read(id);
      if (video.status === 'failed') return video;
      assert.equal(video.status, 'completed', `${id} is at ${video.progress} %`);
      return video;
    }, ms);
  }
}

async function startProcesses(gateway: TestGateway): Promise<void> {
  await Promise.all([gateway.startWorker({}, 'chat'), gateway.startWorker({ WORKER_CONCURRENCY_VIDEO: '5' }, 'video')]);
}

/** Ends Redis and all processes at once, without a word, and starts them again. */
async function restartAll(gateway: TestGateway): Promise<void> {
  const processes = [...gateway.apis.splice(0), ...gateway.workers.splice(0)];
  await Promise.all(processes.map((process) => process.kill()));
  await gateway.redis?.kill();
  await gateway.redis?.restart();
  await Promise.all([gateway.startApi(), startProcesses(gateway)]);
}

test(`POST /v1/videos makes ${videos} videos of ${durationMs / 1000} s on one worker with 5 slots, once each, across a full restart`, async (t) => {
  const chat = await ChatTimes.start();
  t.after(() => chat.stop());
  const vendors = { OPENAI_API_KEY: 'a-key', OPENAI_BASE_URL: chat.vendorUrl };
  const gateway = await TestGateway.start({ aof: true, workers: 0, settings: vendors });
  try {
    await startProcesses(gateway);
    const { warmUp, restMs } = chats;
    await chat.times(gateway, Promise.resolve(), warmUp);
    const idle = await chat.times(gateway, Promise.resolve(), chats.idle, restMs);
    const progress = new Progress(gateway);
    const startedAt = Date.now();
    const ids = await createAll(gateway);
    const some = ids.filter((_, index) => index % Math.ceil(videos / 20) === 0);
    const busy = await chat.times(gateway, progress.watch(some, durationMs / 3), chats.busy, restMs);
    await restartAll(gateway);
    t.diagnostic(`everything was restarted ${Date.now() - startedAt} ms after the first video was asked for`);
    busy.push(...(await chat.times(gateway, progress.watch(some, durationMs / 3), chats.busy, restMs)));
    const ended: Video[] = [];
    // One after the other: what waits for their end must not be the load.
    for (const id of ids) ended.push(await progress.completed(id, durationMs * 2 + 120_000));
    t.diagnostic(`${ended.length} videos ended ${Date.now() - startedAt} ms after the first was asked for`);
    for (const { id, status, error } of ended) assert.equal(status, 'completed', `${id}: ${error?.code}`);
    const journal = await readJournal(gateway.sandbox.url);
    const creations = [...journal].filter(([name]) => name.startsWith('video ')).map(([, calls]) => calls.length);
    assert.deepEqual([creations.length, Math.max(...creations)], [videos, 1], 'videos made, and how often at most');
    const [before, during] = [percentile(idle, 0.99), percentile(busy, 0.99)];
    const times = during / before;
    t.diagnostic(`chat p99: ${before.toFixed(1)} ms idle, ${during.toFixed(1)} ms during (${times.toFixed(2)} times)`);
    // On a machine that does other things as well, small samples have large tails.
    if (isSoak) assert.ok(times <= maxTimes, `chat became ${times.toFixed(2)} times as slow`);
  } finally {
    await gateway.stop();
  }
});
