import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import type OpenAI from 'openai';
import { readImageHeader } from '../../sandbox/image-header.ts';
import { type RunningSandbox, startSandbox } from '../../sandbox/server.ts';
import { VideoRenderer } from '../../sandbox/videos/video-renderer.ts';
import { pngBytes, pngFile } from '../support/image-files.ts';
import { mp4Facts } from '../support/mp4-facts.ts';
import { clientOf, createCompleted, createVideo, pollToEnd } from '../support/sandbox-videos.ts';

let sandbox: RunningSandbox;
let client: OpenAI;
before(async () => {
  sandbox = await startSandbox({ journal: true });
  client = clientOf(sandbox);
});
after(() => sandbox.close());

const prompt = 'A sea otter';

async function contentOf(id: string, variant: 'video' | 'thumbnail' | 'spritesheet' = 'video') {
  const answer = await client.videos.downloadContent(id, { variant });
  const bytes = Buffer.from(await answer.arrayBuffer());
  assert.equal(answer.headers.get('content-length'), String(bytes.length));
  return { type: answer.headers.get('content-type'), bytes };
}

async function hashOf(id: string): Promise<string> {
  return createHash('sha256')
    .update((await contentOf(id)).bytes)
    .digest('hex');
}

async function call(method: string, path: string, body?: unknown) {
  const answer = await fetch(`${sandbox.url}/v1${path}`, {
    method,
    ...(body !== undefined && { body: body instanceof FormData ? body : JSON.stringify(body) }),
  });
  const { error, ...video } = (await answer.json()) as OpenAI.Video & { error: Record<string, unknown> };
  return { status: answer.status, error, video };
}

describe('sandbox POST /v1/videos', () => {
  it('sandbox POST /v1/videos returns a video that is queued, in progress and completed, with rising progress', async () => {
    const created = await createVideo(client, { sandbox: { video: { duration_ms: 1500, queued_ms: 300 } } });
    const seen = [created, ...(await pollToEnd(client, created.id))];
    assert.deepEqual([...new Set(seen.map(({ status }) => status))], ['queued', 'in_progress', 'completed']);
    const progress = seen.map((video) => video.progress);
    assert.deepEqual(
      progress,
      [...progress].sort((a, b) => a - b),
    );
    assert.ok(new Set(progress).size > 4 && progress.every(Number.isInteger), String(progress));
    const { id, created_at, ...rest } = created;
    assert.match(id, /^video_/);
    assert.ok(Math.abs(created_at - Date.now() / 1000) < 60);
    assert.deepEqual(rest, {
      ...{ object: 'video', model: 'sandbox-video', status: 'queued', progress: 0, prompt, size: '1280x720' },
      ...{ seconds: '4', completed_at: null, expires_at: null, error: null, remixed_from_video_id: null },
    });
    const { status, progress: atEnd, completed_at, expires_at, ...same } = seen.at(-1) as OpenAI.Video;
    assert.deepEqual([status, atEnd], ['completed', 100]);
    assert.ok(completed_at !== null && completed_at - created_at <= 2 && expires_at === completed_at + 86_400);
    const before = { ...created } as Partial<OpenAI.Video>;
    for (const name of ['status', 'progress', 'completed_at', 'expires_at'] as const) delete before[name];
    assert.deepEqual(same, before);
  });

  it('sandbox POST /v1/videos takes about two seconds by default, and any requested time', async () => {
    const started = performance.now();
    const seen = await pollToEnd(client, (await createVideo(client)).id);
    const took = performance.now() - started;
    assert.ok(seen.length > 10 && took > 1900 && took < 4000, `${took} ms`);
    const slow = await createVideo(client, { sandbox: { video: { duration_ms: 180_000, queued_ms: 0 } } });
    assert.deepEqual([slow.status, slow.progress], ['in_progress', 0]);
  });

  it('sandbox POST /v1/videos makes H.264 MP4s in every size and length, deterministically', async () => {
    const cases = [
      ['sandbox-video', '1280x720', '4'],
      ['sandbox-video', '1792x1024', '8'],
      ['sandbox-video-portrait', '720x1280', '12'],
      ['sandbox-video-portrait', '1024x1792', '4'],
    ] as const;
    for (const [model, size, seconds] of cases) {
      const video = await createCompleted(client, { model, size, seconds });
      assert.deepEqual([video.model, video.size, video.seconds], [model, size, seconds]);
      const { type, bytes } = await contentOf(video.id);
      assert.equal(type, 'video/mp4');
      const [width, height] = size.split('x').map(Number);
      assert.deepEqual(mp4Facts(bytes), {
        ...{ boxes: ['ftyp', 'free', 'mdat', 'moov', 'free'], codec: 'avc1', width, height },
        ...{ durationSeconds: Number(seconds), frames: Number(seconds), madeAt: [0, 0, 0] },
      });
      assert.ok(bytes.length < 100_000, `${bytes.length} bytes`);
      const again = await createCompleted(client, { model, size, seconds });
      assert.equal(await hashOf(again.id), await hashOf(video.id));
    }
    const [otter, orca] = [await createCompleted(client), await createCompleted(client, { prompt: 'An orca' })];
    assert.notEqual(await hashOf(otter.id), await hashOf(orca.id));
  });

  it('sandbox POST /v1/videos chooses the first size of the model, and landscape without a model', async () => {
    assert.equal((await createVideo(client, { model: 'sandbox-video-portrait' })).size, '720x1280');
    const { video } = await call('POST', '/videos', { prompt });
    assert.deepEqual([video.model, video.size], ['sandbox-video', '1280x720']);
  });

  it('sandbox POST /v1/videos shows its input image, as a file, in JSON and as an object in a form', async () => {
    const file = pngFile('a.png', 1280, 720);
    const url = `data:image/png;base64,${pngBytes(1280, 720).toString('base64')}`;
    const now = { video: { duration_ms: 0 } };
    const inJson = await call('POST', '/videos', { prompt, input_reference: { image_url: url }, sandbox: now });
    const ids = [
      (await createCompleted(client, { input_reference: file })).id,
      inJson.video.id,
      (await createCompleted(client, { input_reference: { image_url: url } })).id,
    ];
    const hashes = new Set(await Promise.all(ids.map(hashOf)));
    assert.equal(hashes.size, 1);
    assert.ok(!hashes.has(await hashOf((await createCompleted(client)).id)));
  });

  it('sandbox POST /v1/videos returns 400 naming the parameter at fault', async () => {
    const good = { model: 'sandbox-video', prompt };
    const form = (...entries: [string, string | Blob][]) => {
      const data = new FormData();
      for (const [name, value] of [['prompt', prompt], ...entries] as [string, string | Blob][]) {
        data.append(name, value as string);
      }
      return data;
    };
    const options = (video: unknown) => ({ ...good, sandbox: { video } });
    const cases: [string | null, string | null, unknown][] = [
      [null, null, []],
      ['prompt', 'missing_required_parameter', { model: 'sandbox-video' }],
      ['prompt', 'empty_string', { prompt: '' }],
      ['prompt', 'string_above_max_length', { prompt: 'x'.repeat(32_001) }],
      ['size', 'invalid_value', { ...good, size: '720x1280' }],
      ['size', 'invalid_value', { ...good, model: 'sandbox-video-portrait', size: '1280x720' }],
      ['seconds', 'invalid_value', { ...good, seconds: '5' }],
      ['seconds', 'invalid_value', { ...good, seconds: 4 }],
      ['n', 'unknown_parameter', { ...good, n: 2 }],
      ['input_reference', null, { ...good, input_reference: { file_id: 'file-1' } }],
      [
        'input_reference',
        null,
        { ...good, input_reference: { image_url: `data:image/png;base64,${pngBytes(64).toString('base64')}` } },
      ],
      [
        'input_reference',
        'unsupported_file_mimetype',
        { ...good, input_reference: { image_url: 'data:text/plain;base64,aGk=' } },
      ],
      ['input_reference.image_url', null, { ...good, input_reference: { image_url: 'https://example.com/a.png' } }],
      ['input_reference', null, form(['input_reference', pngFile('a.png', 720, 1280)])],
      ['input_reference', 'unsupported_file_mimetype', form(['input_reference', new Blob(['x'])])],
      [
        'input_reference',
        null,
        form(
          ['input_reference', pngFile('a.png', 1280, 720)],
          [
            'input_reference',
            JSON.stringify({ image_url: `data:image/png;base64,${pngBytes(1280, 720).toString('base64')}` }),
          ],
        ),
      ],
      ['picture', 'unknown_parameter', form(['picture', pngFile('a.png', 1280, 720)])],
      [
        null,
        null,
        form(['input_reference', pngFile('a.png', 1280, 720)], ['input_reference', pngFile('b.png', 1280, 720)]),
      ],
      ['sandbox.fault.kind', null, { ...good, sandbox: { fault: { kind: 'no_done' } } }],
      ['sandbox.video', null, options(5)],
      ['sandbox.video.speed', null, options({ speed: 1 })],
      ['sandbox.video.duration_ms', null, options({ duration_ms: -1 })],
      ['sandbox.video.queued_ms', null, options({ duration_ms: 10, queued_ms: 11 })],
      ['sandbox.video.progress', null, options({ progress: [101] })],
      ['sandbox.video.failure.code', null, options({ failure: { code: 5 } })],
      ['sandbox.video.poll_fault.kind', null, options({ poll_fault: { kind: 'no_done' } })],
      ['sandbox.video.poll_fault.after_tokens', null, options({ poll_fault: { kind: 'error', after_tokens: 1 } })],
      ['sandbox.video.content_fault.kind', null, options({ content_fault: { kind: 'malformed' } })],
    ];
    for (const [param, code, body] of cases) {
      const { status, error } = await call('POST', '/videos', body);
      assert.deepEqual([status, error.param, error.code], [400, param, code], JSON.stringify(error));
      assert.equal(error.type, 'invalid_request_error');
    }
    const other = await call('POST', '/videos', { ...good, model: 'sandbox-image' });
    assert.deepEqual([other.status, other.error.code], [404, 'model_not_found']);
  });
});

describe('sandbox GET /v1/videos/{id}/content', () => {
  it('sandbox GET /v1/videos/{id}/content returns a thumbnail and a spritesheet as WebP', async () => {
    const { id } = await createCompleted(client, { seconds: '12' });
    const [thumbnail, sheet] = [await contentOf(id, 'thumbnail'), await contentOf(id, 'spritesheet')];
    const sizes = [thumbnail, sheet].map(({ type, bytes }) => {
      const { format, width, height } = readImageHeader(bytes) ?? {};
      return [type, format, width, height];
    });
    assert.deepEqual(sizes, [
      ['image/webp', 'WebP', 1280, 720],
      ['image/webp', 'WebP', 1280, 540],
    ]);
  });

  it('sandbox GET /v1/videos/{id}/content returns 404 without a completed video, and 400 for an unknown variant', async () => {
    const slow = await createVideo(client, { sandbox: { video: { duration_ms: 60_000 } } });
    const failed = await createVideo(client, { sandbox: { video: { duration_ms: 0, failure: {} } } });
    for (const { id } of [slow, failed]) assert.equal((await call('GET', `/videos/${id}/content`)).status, 404);
    const { id } = await createCompleted(client);
    const unknown = await call('GET', `/videos/${id}/content?variant=poster`);
    assert.deepEqual([unknown.status, unknown.error.param], [400, 'variant']);
    const extra = await call('GET', `/videos/${id}/content?size=1`);
    assert.deepEqual([extra.status, extra.error.param], [400, 'size']);
  });

  it('VideoRenderer makes a file once for concurrent requests, keeps the last 16, and recovers from a failure', async () => {
    const renderer = new VideoRenderer();
    const clip = { model: 'm', prompt, width: 64, height: 64, seconds: 4, reference: undefined, isRemix: false };
    const first = renderer.render('video', clip);
    assert.equal(renderer.render('video', { ...clip }), first);
    assert.notEqual(renderer.render('thumbnail', clip), first);
    assert.equal(mp4Facts(await first).width, 64);
    for (let count = 0; count < 16; count += 1) await renderer.render('thumbnail', { ...clip, prompt: String(count) });
    assert.notEqual(renderer.render('video', clip), first);
    const wrong = { ...clip, width: 63 };
    const broken = renderer.render('video', wrong);
    const behind = renderer.render('video', { ...clip, prompt: 'behind' });
    await assert.rejects(broken);
    assert.equal(mp4Facts(await behind).frames, 4);
    const again = renderer.render('video', wrong);
    assert.notEqual(again, broken);
    await assert.rejects(again);
    await renderer.close();
    await assert.rejects(renderer.render('video', { ...clip, prompt: 'late' }), /closed/);
  });
});

describe('sandbox POST /v1/videos/{id}/remix', () => {
  it('sandbox POST /v1/videos/{id}/remix makes a video like the source with another prompt', async () => {
    const source = await createCompleted(client, { model: 'sandbox-video-portrait', size: '1024x1792', seconds: '8' });
    const remix = await client.videos.remix(source.id, { prompt: 'A sea otter with a hat' });
    assert.notEqual(remix.id, source.id);
    assert.deepEqual(
      [remix.remixed_from_video_id, remix.prompt, remix.model, remix.size, remix.seconds, remix.status],
      [source.id, 'A sea otter with a hat', source.model, source.size, source.seconds, 'queued'],
    );
    const done = await call('POST', `/videos/${source.id}/remix`, { prompt, sandbox: { video: { duration_ms: 0 } } });
    assert.deepEqual([done.status, done.video.status], [200, 'completed']);
    // The title says that it is a remix.
    const again = await createCompleted(client, { model: source.model, size: source.size, seconds: '8' });
    assert.notEqual(await hashOf(done.video.id), await hashOf(again.id));
  });

  it('sandbox POST /v1/videos/{id}/remix rejects an incomplete or missing source, and unsupported fields', async () => {
    const slow = await createVideo(client, { sandbox: { video: { duration_ms: 60_000 } } });
    const { id } = await createCompleted(client);
    const cases: [string, number, string, unknown][] = [
      [slow.id, 400, 'video_id', { prompt }],
      ['video_none', 404, 'video_id', { prompt }],
      [id, 400, 'prompt', {}],
      [id, 400, 'model', { prompt, model: 'sandbox-video' }],
      [id, 400, 'size', { prompt, size: '1280x720' }],
    ];
    for (const [source, expected, param, body] of cases) {
      const { status, error } = await call('POST', `/videos/${source}/remix`, body);
      assert.deepEqual([status, error.param], [expected, param]);
    }
    assert.equal((await call('GET', `/videos/${id}/remix`)).status, 405);
  });
});

describe('sandbox GET and DELETE /v1/videos', () => {
  it('sandbox GET /v1/videos lists page by page, newest or oldest first', async (context) => {
    const own = await startSandbox();
    context.after(() => own.close());
    const lister = clientOf(own);
    assert.deepEqual((await lister.videos.list()).data, []);
    const ids: string[] = [];
    for (let count = 0; count < 5; count += 1) ids.push((await createVideo(lister)).id);
    const listed = async (query: OpenAI.VideoListParams) => {
      const found: string[] = [];
      for await (const { id } of lister.videos.list(query)) found.push(id);
      return found;
    };
    assert.deepEqual(await listed({ limit: 2, order: 'asc' }), ids);
    assert.deepEqual(await listed({ limit: 2 }), [...ids].reverse());
    assert.deepEqual(await listed({ limit: 3, order: 'asc', after: ids[1] as string }), ids.slice(2));
    const page = await lister.videos.list({ limit: 5 });
    assert.deepEqual([page.has_more, page.last_id], [false, ids[0]]);
    for (const [query, param] of [
      ['limit=101', 'limit'],
      ['limit=x', 'limit'],
      ['order=up', 'order'],
      ['after=video_none', 'after'],
      ['before=x', 'before'],
    ] as const) {
      const { status, error } = await call('GET', `/videos?${query}`);
      assert.deepEqual([status, error.param], [400, param]);
    }
  });

  it('sandbox DELETE /v1/videos/{id} deletes ended videos, and nothing else', async () => {
    const { id } = await createCompleted(client);
    assert.deepEqual({ ...(await client.videos.delete(id)) }, { id, object: 'video.deleted', deleted: true });
    await assert.rejects(client.videos.retrieve(id), { status: 404 });
    await assert.rejects(client.videos.delete(id), { status: 404 });
    await assert.rejects(client.videos.downloadContent(id), { status: 404 });
    const slow = await createVideo(client, { sandbox: { video: { duration_ms: 60_000 } } });
    await assert.rejects(client.videos.delete(slow.id), { status: 400 });
    assert.equal((await client.videos.retrieve(slow.id)).id, slow.id);
    assert.equal((await call('POST', `/videos/${id}`)).status, 405);
  });
});
