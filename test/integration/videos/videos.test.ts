import assert from 'node:assert/strict';
import { rename, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { Redis } from 'ioredis';
import type OpenAI from 'openai';
import { readImageHeader } from '../../../sandbox/image-header.ts';
import { openDatabase } from '../../../shared/database/database.ts';
import { jobKeys } from '../../../shared/redis/keys.ts';
import { assertErrorAnswer } from '../../support/error-answers.ts';
import { eventually } from '../../support/eventually.ts';
import { TestGateway } from '../../support/gateway.ts';
import { pngBytes, pngFile } from '../../support/image-files.ts';
import { makeApiKey } from '../../support/make-api-key.ts';
import { mp4Facts } from '../../support/mp4-facts.ts';
import { createVideo } from '../../support/sandbox-videos.ts';
import { sseEvents } from '../../support/sse-events.ts';
import { storedBlobs } from '../../support/stored-blobs.ts';
import { vendorCalls } from '../../support/vendor-journal.ts';

/** A video that the sandbox makes in no time. */
const atOnce = { video: { duration_ms: 0 } };

let gateway: TestGateway;
let client: OpenAI;
before(async () => {
  gateway = await TestGateway.start();
  client = gateway.client();
});
after(() => gateway.stop());

/** Asks for a video until it has ended; answers all that was seen. */
async function watch(id: string): Promise<OpenAI.Video[]> {
  const seen: OpenAI.Video[] = [];
  await eventually(async () => {
    seen.push(await client.videos.retrieve(id));
    assert.match(seen.at(-1)?.status ?? '', /completed|failed/);
  }, 30_000);
  return seen;
}

async function completed(more: Parameters<typeof createVideo>[1] = {}): Promise<OpenAI.Video> {
  const { id } = await createVideo(client, { sandbox: atOnce, ...more });
  const video = (await watch(id)).at(-1) as OpenAI.Video;
  assert.equal(video.status, 'completed');
  return video;
}

/** The vendor's ids of the videos that a test's calls have made. */
async function creationsOf(testId: string): Promise<string[]> {
  return (await vendorCalls(gateway, testId)).flatMap(({ video }) => video?.id ?? []);
}

/** Takes jobs out of Redis, once the database has all of them. */
async function forgetInRedis(jobIds: readonly string[]): Promise<void> {
  const redis = new Redis(gateway.redisUrl);
  for (const jobId of jobIds) {
    await eventually(async () => {
      const ttl = await redis.pttl(jobKeys.state(jobId));
      assert.ok(ttl > 0 && ttl <= 300_000, `not released by the ledger yet: ${ttl}`);
    });
    await redis.del(jobKeys.state(jobId));
    await redis.del(jobKeys.log(jobId));
  }
  redis.disconnect();
}

const post = (path: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> =>
  gateway.fetch(path, { method: 'POST', body: JSON.stringify(body), headers });

describe('POST /v1/videos', () => {
  it('POST /v1/videos returns at once, then shows a progress that never falls, and finally the file', async () => {
    const created = await createVideo(client, { user: 'one', sandbox: { video: { duration_ms: 3000 } } });
    const { id, created_at: createdAt, status, progress, ...rest } = created;
    assert.match(id, /^video_[0-9a-f]{32}$/);
    assert.match(status, /^(queued|in_progress)$/);
    assert.ok(progress < 100 && Math.abs(createdAt - Date.now() / 1000) < 60);
    assert.deepEqual(rest, {
      ...{ object: 'video', model: 'sandbox-video', prompt: 'A sea otter', size: '1280x720', seconds: '4' },
      ...{ completed_at: null, expires_at: null, error: null, remixed_from_video_id: null },
    });
    const seen = [created, ...(await watch(id))];
    const progresses = seen.map((video) => video.progress);
    assert.deepEqual(
      progresses,
      [...progresses].sort((a, b) => a - b),
    );
    assert.ok(progresses.every(Number.isInteger) && new Set(progresses).size > 2, String(progresses));
    const last = seen.at(-1) as OpenAI.Video;
    assert.deepEqual([last.status, last.progress, last.error], ['completed', 100, null]);
    assert.ok(last.completed_at !== null && last.completed_at >= createdAt);
    assert.equal(last.expires_at, last.completed_at + 86_400);
    const file = Buffer.from(await (await client.videos.downloadContent(id)).arrayBuffer());
    const { width, height } = mp4Facts(file);
    assert.deepEqual([width, height], [1280, 720]);
    assert.equal((await creationsOf('one')).length, 1);
  });

  it('POST /v1/videos makes portraits with the portrait model, and returns 400 for its other sizes', async () => {
    const video = await completed({ model: 'sandbox-video-portrait' as 'sora-2', seconds: '8' });
    assert.deepEqual([video.size, video.seconds], ['720x1280', '8']);
    const refused = { model: 'sandbox-video-portrait', prompt: 'A sea otter', size: '1280x720' };
    const { param } = await assertErrorAnswer(await post('/v1/videos', refused), 400, 'invalid_request_error');
    assert.equal(param, 'size');
  });

  it('POST /v1/videos accepts a first image as a file, as a data URL in a form, or in JSON', async () => {
    const picture = pngFile('first.png', 1280, 720);
    await completed({ input_reference: picture, user: 'file' });
    const image_url = `data:image/png;base64,${pngBytes(1280, 720).toString('base64')}`;
    await completed({ input_reference: { image_url }, user: 'address' });
    const body = { model: 'sandbox-video', prompt: 'A sea otter', input_reference: { image_url }, sandbox: atOnce };
    const { id } = (await (await post('/v1/videos', body)).json()) as OpenAI.Video;
    assert.equal((await watch(id)).at(-1)?.status, 'completed');
  });

  it('POST /v1/videos ends as failed with the reason when the vendor refuses or gives up', async () => {
    const refused = await createVideo(client, { input_reference: pngFile('small.png', 64, 64), sandbox: atOnce });
    const { status, error } = (await watch(refused.id)).at(-1) as OpenAI.Video;
    assert.equal(status, 'failed');
    assert.match(error?.message ?? '', /size|width|height|match/i);
    const failure = { code: 'moderation_blocked', message: 'It was blocked.' };
    const blocked = await createVideo(client, { sandbox: { video: { duration_ms: 0, failure } } });
    const ended = (await watch(blocked.id)).at(-1) as OpenAI.Video;
    assert.deepEqual([ended.status, ended.error?.code], ['failed', 'moderation_blocked']);
    await assertErrorAnswer(await gateway.fetch(`/v1/videos/${ended.id}/content`), 400, 'invalid_request_error');
  });

  const faults: readonly (readonly [string, unknown, string])[] = [
    ['a missing prompt', { model: 'sandbox-video' }, 'prompt'],
    ['a missing model', { prompt: 'x' }, 'model'],
    ['an empty prompt', { model: 'sandbox-video', prompt: '' }, 'prompt'],
    ['a length that the model does not support', { model: 'sandbox-video', prompt: 'x', seconds: '5' }, 'seconds'],
    ['a stream', { model: 'sandbox-video', prompt: 'x', stream: true }, 'stream'],
    ['a malformed size', { model: 'sandbox-video', prompt: 'x', size: 'large' }, 'size'],
    ['a model of another capability', { model: 'sandbox-image', prompt: 'x' }, 'model'],
    [
      'a file id',
      { model: 'sandbox-video', prompt: 'x', input_reference: { file_id: 'file-1' } },
      'input_reference.file_id',
    ],
  ];
  for (const [what, body, parameter] of faults) {
    it(`POST /v1/videos returns 400 naming ${parameter} for ${what}`, async () => {
      const { param } = await assertErrorAnswer(await post('/v1/videos', body), 400, 'invalid_request_error');
      assert.equal(param, parameter);
    });
  }

  it('POST /v1/videos replays an Idempotency-Key with the same video and one vendor call', async () => {
    const body = { model: 'sandbox-video', prompt: 'A sea otter', user: 'keyed', sandbox: atOnce };
    const headers = { 'idempotency-key': 'video-1' };
    const one = (await (await post('/v1/videos', body, headers)).json()) as OpenAI.Video;
    await watch(one.id);
    const answer = await post('/v1/videos', body, headers);
    const again = (await answer.json()) as OpenAI.Video;
    assert.deepEqual(
      [again.id, again.status, answer.headers.get('idempotent-replayed')],
      [one.id, 'completed', 'true'],
    );
    assert.equal((await creationsOf('keyed')).length, 1);
  });

  it('POST /v1/videos with respond-async returns a job with progress events and the video as its result', async () => {
    const body = { model: 'sandbox-video', prompt: 'A sea otter', sandbox: { video: { duration_ms: 3000 } } };
    const accepted = await post('/v1/videos', body, { prefer: 'respond-async' });
    assert.equal(accepted.status, 202);
    const job = (await accepted.json()) as { id: string; urls: { events: string } };
    const events = sseEvents(await (await gateway.fetch(`/v1/jobs/${job.id}/events`)).text());
    const videos = events.map(({ data }) => JSON.parse(data) as OpenAI.Video);
    assert.deepEqual(new Set(events.map(({ event }) => event)), new Set(['video.in_progress', 'video.completed']));
    assert.equal(videos.at(-1)?.status, 'completed');
    const shown = (await (await gateway.fetch(`/v1/jobs/${job.id}`)).json()) as {
      status: string;
      result: OpenAI.Video;
    };
    assert.equal(shown.status, 'completed');
    assert.deepEqual(shown.result, await client.videos.retrieve(job.id.replace('job_', 'video_')));
  });
});

describe('GET /v1/videos/{id}/content', () => {
  let video: OpenAI.Video;
  before(async () => {
    video = await completed();
  });

  it('GET /v1/videos/{id}/content returns each variant, and 400 for an unknown one', async () => {
    for (const variant of ['thumbnail', 'spritesheet'] as const) {
      const answer = await client.videos.downloadContent(video.id, { variant });
      assert.equal(answer.headers.get('content-type'), 'image/webp');
      assert.equal(readImageHeader(Buffer.from(await answer.arrayBuffer()))?.format, 'WebP');
    }
    const { param } = await assertErrorAnswer(
      await gateway.fetch(`/v1/videos/${video.id}/content?variant=audio`),
      400,
      'invalid_request_error',
    );
    assert.equal(param, 'variant');
  });

  it('GET /v1/videos/{id}/content returns 206 for a Range, and 416 for an unsatisfiable one', async () => {
    const path = `/v1/videos/${video.id}/content`;
    const whole = Buffer.from(await (await gateway.fetch(path)).arrayBuffer());
    const part = await gateway.fetch(path, { headers: { range: 'bytes=100-199' } });
    assert.deepEqual([part.status, part.headers.get('content-range')], [206, `bytes 100-199/${whole.length}`]);
    assert.deepEqual(Buffer.from(await part.arrayBuffer()), whole.subarray(100, 200));
    await assertErrorAnswer(
      await gateway.fetch(path, { headers: { range: `bytes=${whole.length}-` } }),
      416,
      'range_not_satisfiable',
    );
    const head = await gateway.fetch(path, { method: 'HEAD' });
    assert.deepEqual([head.status, head.headers.get('content-length')], [200, String(whole.length)]);
    for (const [condition, status] of [
      [head.headers.get('etag') as string, 206],
      ['"another"', 200],
    ] as const) {
      const answer = await gateway.fetch(path, { headers: { range: 'bytes=0-9', 'if-range': condition } });
      assert.equal(answer.status, status);
      await answer.arrayBuffer();
    }
  });

  it('GET /v1/videos/{id}/content returns 410 for a missing file, while the video is still shown', async () => {
    const { id } = await completed();
    const path = `/v1/videos/${id}/content`;
    const { headers } = await gateway.fetch(path, { method: 'HEAD' });
    const [, hour, name] = /^"(\d{10})-(.+)"$/.exec(headers.get('etag') ?? '') ?? [];
    await rm(join(gateway.dataDir, 'blobs', String(hour), String(name)));
    const missing = await gateway.fetch(path);
    assert.match(await missing.clone().text(), /no longer stored/);
    await assertErrorAnswer(missing, 410, 'resume_expired');
    assert.equal((await client.videos.retrieve(id)).status, 'completed');
  });

  it('GET /v1/videos/{id}/content returns 503 while the storage is unreadable, and works again afterwards', async () => {
    const path = `/v1/videos/${video.id}/content`;
    const { headers } = await gateway.fetch(path, { method: 'HEAD' });
    const [, hour, name] = /^"(\d{10})-(.+)"$/.exec(headers.get('etag') ?? '') ?? [];
    const file = join(gateway.dataDir, 'blobs', String(hour), String(name));
    await rename(file, `${file}.aside`);
    // Whoever follows it goes in a ring.
    await symlink(file, file);
    await assertErrorAnswer(await gateway.fetch(path), 503, 'service_unavailable');
    await rename(`${file}.aside`, file);
    assert.equal((await gateway.fetch(path, { method: 'HEAD' })).status, 200);
  });
});

describe('POST /v1/videos/{id}/remix', () => {
  it('POST /v1/videos/{id}/remix makes a new video and names its source', async () => {
    const source = await completed();
    const remix = await client.videos.remix(source.id, { prompt: 'At night' });
    assert.deepEqual(
      [remix.remixed_from_video_id, remix.prompt, remix.model, remix.size],
      [source.id, 'At night', source.model, source.size],
    );
    assert.equal((await watch(remix.id)).at(-1)?.status, 'completed');
  });

  it('POST /v1/videos/{id}/remix accepts a form with a prompt and nothing else', async () => {
    const source = await completed();
    const remixes = `/v1/videos/${source.id}/remix`;
    const headers = { authorization: `Bearer ${gateway.apiKey}` };
    const send = (fields: Readonly<Record<string, string | File>>): Promise<Response> => {
      const body = new FormData();
      for (const [name, value] of Object.entries(fields)) body.set(name, value);
      return fetch(`${gateway.url}${remixes}`, { method: 'POST', headers, body });
    };
    const answer = await send({ prompt: 'At night' });
    const remix = (await answer.json()) as OpenAI.Video;
    assert.deepEqual([answer.status, remix.remixed_from_video_id, remix.prompt], [200, source.id, 'At night']);
    assert.equal((await watch(remix.id)).at(-1)?.status, 'completed');
    assert.equal((await assertErrorAnswer(await send({}), 400, 'invalid_request_error')).param, 'prompt');
    const withFile = await send({ prompt: 'x', image: new File(['x'], 'x.png') });
    assert.equal((await assertErrorAnswer(withFile, 400, 'invalid_request_error')).param, 'image');
  });

  it('POST /v1/videos/{id}/remix returns 400 for an unfinished video and 404 for an unknown one', async () => {
    const { id } = await createVideo(client, { sandbox: { video: { duration_ms: 60_000 } } });
    await assertErrorAnswer(await post(`/v1/videos/${id}/remix`, { prompt: 'x' }), 400, 'invalid_request_error');
    await assertErrorAnswer(await post(`/v1/videos/video_${'0'.repeat(32)}/remix`, { prompt: 'x' }), 404, 'not_found');
    await client.videos.delete(id);
  });

  it('POST /v1/videos/{id}/remix accepts a remix whose source is deleted, and returns 404 for a deleted video', async () => {
    const source = await completed();
    const remix = await client.videos.remix(source.id, { prompt: 'At night' });
    assert.equal((await watch(remix.id)).at(-1)?.status, 'completed');
    await client.videos.delete(source.id);
    const again = await client.videos.remix(remix.id, { prompt: 'At dawn' });
    assert.equal(again.remixed_from_video_id, remix.id);
    assert.equal((await watch(again.id)).at(-1)?.status, 'completed');
    await assertErrorAnswer(await post(`/v1/videos/${source.id}/remix`, { prompt: 'x' }), 404, 'not_found');
  });

  it('POST /v1/videos/{id}/remix treats an Idempotency-Key per source video', async () => {
    const ask = async (id: string): Promise<string | null> => {
      const headers = { 'idempotency-key': 'remix-1' };
      const remix = (await (await post(`/v1/videos/${id}/remix`, { prompt: 'x' }, headers)).json()) as OpenAI.Video;
      assert.equal(remix.remixed_from_video_id, id);
      return remix.id;
    };
    const [one, other] = [(await completed()).id, (await completed()).id];
    const remix = await ask(one);
    assert.notEqual(await ask(other), remix);
    assert.equal(await ask(one), remix);
  });

  it('POST /v1/videos/{id}/remix returns 413 for a body that is too large, and 400 for a prompt that is', async () => {
    const { id } = await completed();
    for (const length of [300_000, 600_000]) {
      const other = { prompt: 'x', user: 'u'.repeat(length) };
      await assertErrorAnswer(await post(`/v1/videos/${id}/remix`, other), 413, 'request_too_large');
    }
    const long = { prompt: 'x'.repeat(300_000) };
    const { param } = await assertErrorAnswer(await post(`/v1/videos/${id}/remix`, long), 400, 'invalid_request_error');
    assert.equal(param, 'prompt');
  });
});

describe('GET /v1/videos and DELETE /v1/videos/{id}', () => {
  it('GET /v1/videos pages through the videos of the account in both orders, and returns 400 for an invalid query', async () => {
    const ids: string[] = [];
    for (let count = 0; count < 5; count++) ids.unshift((await completed()).id);
    const newest: string[] = [];
    for await (const video of client.videos.list({ limit: 2 })) {
      newest.push(video.id);
      if (newest.length === 5) break;
    }
    assert.deepEqual(newest, ids);
    const page = await client.videos.list({ limit: 3, order: 'asc', after: ids[4] as string });
    assert.deepEqual(
      page.data.map(({ id }) => id),
      [ids[3], ids[2], ids[1]],
    );
    assert.equal(page.has_more, true);
    const none = await client.videos.list({ limit: 0 });
    assert.deepEqual([none.data, none.has_more], [[], true]);
    for (const query of ['limit=-1', 'limit=101', 'limit=0x10', 'order=up', 'after=nothing']) {
      await assertErrorAnswer(await gateway.fetch(`/v1/videos?${query}`), 400, 'invalid_request_error');
    }
  });

  it('every video route returns 404 for a video of another account, and GET /v1/videos omits it', async () => {
    const { id } = await completed();
    const headers = { authorization: `Bearer ${await makeApiKey(gateway, { accountId: 'another' })}` };
    for (const path of [`/v1/videos/${id}`, `/v1/videos/${id}/content`, `/v1/jobs/${id}`]) {
      await assertErrorAnswer(await gateway.fetch(path, { headers }), 404, 'not_found');
    }
    await assertErrorAnswer(await gateway.fetch(`/v1/videos/${id}`, { method: 'DELETE', headers }), 404, 'not_found');
    const list = (await (await gateway.fetch('/v1/videos', { headers })).json()) as { data: unknown[] };
    assert.deepEqual(list.data, []);
  });

  it('DELETE /v1/videos/{id} deletes a video and its files', async () => {
    const { id } = await completed();
    const files = async (): Promise<number> => (await storedBlobs(gateway.dataDir)).length;
    const before = await files();
    assert.deepEqual({ ...(await client.videos.delete(id)) }, { id, object: 'video.deleted', deleted: true });
    assert.equal(await files(), before - 3);
    for (const path of [`/v1/videos/${id}`, `/v1/videos/${id}/content`, `/v1/jobs/${id}`]) {
      await assertErrorAnswer(await gateway.fetch(path), 404, 'not_found');
    }
    assert.ok(!(await client.videos.list()).data.some((video) => video.id === id));
    await assertErrorAnswer(await gateway.fetch(`/v1/videos/${id}`, { method: 'DELETE' }), 404, 'not_found');
  });

  it('DELETE /v1/videos/{id} cancels a video that is in progress', async () => {
    const { id } = await createVideo(client, { sandbox: { video: { duration_ms: 60_000 } } });
    await eventually(async () => assert.equal((await client.videos.retrieve(id)).status, 'in_progress'));
    await client.videos.delete(id);
    await assertErrorAnswer(await gateway.fetch(`/v1/videos/${id}`), 404, 'not_found');
    const db = await openDatabase(gateway);
    try {
      await eventually(async () => {
        const row = db.selectFrom('jobs').select('outcome').where('id', '=', id.replace('video_', ''));
        assert.deepEqual(await row.executeTakeFirst(), { outcome: 'cancelled' });
      });
    } finally {
      await db.destroy();
    }
  });

  it('GET /v1/videos/{id} returns 410 for an expired video, and GET /v1/videos lists the others', async () => {
    const failure = { code: 'moderation_blocked', message: 'It was blocked.' };
    const { id: failed } = await createVideo(client, { sandbox: { video: { duration_ms: 0, failure } } });
    await watch(failed);
    const [unread, kept] = [(await completed()).id, (await completed()).id];
    const jobIds = [failed, unread].map((id) => id.replace('video_', ''));
    await forgetInRedis(jobIds);
    const db = await openDatabase(gateway);
    try {
      const [first, second] = jobIds as [string, string];
      await db.updateTable('job_bodies').set({ expires_at: 1 }).where('job_id', '=', first).execute();
      // As if it were deleted while the list is read.
      await db.updateTable('job_bodies').set({ answer: null }).where('job_id', '=', second).execute();
    } finally {
      await db.destroy();
    }
    for (const id of [failed, unread]) {
      await assertErrorAnswer(await gateway.fetch(`/v1/videos/${id}`), 410, 'resume_expired');
    }
    const page = await client.videos.list({ limit: 2 });
    assert.deepEqual(
      page.data.map(({ id }) => id),
      [kept],
    );
    assert.equal(page.has_more, true);
  });

  it('GET /v1/videos/{id} shows a video from the database when Redis has lost it', async () => {
    const video = await completed();
    await forgetInRedis([video.id.replace('video_', '')]);
    assert.deepEqual(await client.videos.retrieve(video.id), video);
    assert.equal((await client.videos.downloadContent(video.id)).status, 200);
    const remix = await client.videos.remix(video.id, { prompt: 'At night' });
    assert.equal(remix.remixed_from_video_id, video.id);
  });
});
