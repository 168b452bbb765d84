import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { createFalClient, type FalClient } from '@fal-ai/client';
import type { ImageJob } from '../../../shared/capabilities/image.ts';
import type { VideoJob } from '../../../shared/capabilities/video.ts';
import { ApiError } from '../../../shared/errors.ts';
import { mediaFieldSupport } from '../../../shared/vendors/field-support.ts';
import { findVendorRow } from '../../../shared/vendors/vendors.ts';
import { createFal } from '../../../workers/vendors/fal/fal.ts';
import { createFilmDownloader } from '../../../workers/vendors/support/video-request.ts';
import type { Offering, TaskCall } from '../../../workers/vendors/vendor.ts';
import { callOf, type FixtureVendor, sendJson, startFixtureVendor } from '../contracts/fixture-vendor.ts';
import { apiKey, imageJob, png } from '../contracts/image-vendor-contract.ts';
import { memoryFiles } from '../contracts/memory-files.ts';
import {
  describePolledImageVendor,
  PolledImageBench,
  type PolledImageVendor,
} from '../contracts/polled-image-vendor-contract.ts';

// As documented on 2026-11-21: https://docs.fal.ai/model-apis/model-endpoints/queue (submission, states, results),
// https://fal.ai/docs/model-api-reference/image-generation-api/flux-dev.md (the result of FLUX),
// https://fal.ai/docs/documentation/model-apis/errors.md and …/request-errors.md (failures). The vendor's own client,
// @fal-ai/client, is driven against them below.
const id = '764cabcf-b745-4b3e-ae38-1200304cf45b';
const requestPath = `/fal-ai/flux/requests/${id}`;
const queued = (path: string, state: object) => (origin: string) => ({
  request_id: id,
  response_url: `${origin}${path}`,
  status_url: `${origin}${path}/status`,
  cancel_url: `${origin}${path}/cancel`,
  ...state,
});
const result = (origin: string) => ({
  images: [{ url: `${origin}/file.png`, width: 1024, height: 768, content_type: 'image/png' }],
  timings: { inference: 0.8 },
  seed: 42,
  has_nsfw_concepts: [false],
  prompt: 'A lighthouse',
});
const wire: PolledImageVendor = {
  create: (baseUrl) => createFal({ name: 'fal', baseUrl, apiKey }),
  model: 'fal-ai/flux/dev',
  begun: queued(requestPath, { status: 'IN_QUEUE', queue_position: 0 }),
  running: queued(requestPath, { status: 'IN_PROGRESS', logs: [] }),
  done: queued(requestPath, { status: 'COMPLETED', logs: [], metrics: { inference_time: 0.8 } }),
  statePath: /\/requests\/[\w-]+\/status$/,
  // https://fal.ai/docs/inference-api/queue/cancel
  discarded: ['PUT', /\/requests\/[\w-]+\/cancel$/],
  result: { path: /\/requests\/[\w-]+$/, body: result },
};

/** fal's own client, whose address of the queue is its fixture's. */
function falClient(baseUrl: string): FalClient {
  return createFalClient({
    credentials: apiKey,
    fetch: (url, init) => fetch(String(url).replace('https://queue.fal.run', baseUrl), init),
  });
}

describePolledImageVendor('fal', wire);

describe('images of fal', () => {
  const bench = new PolledImageBench(wire);

  const sent = async (parameters: object, model: string, job: Partial<ImageJob> = {}): Promise<unknown> => {
    bench.answer();
    const { files } = memoryFiles({ one: png });
    await bench.make({ model, request: imageJob(parameters, job), files });
    return bench.posted;
  };

  it("fal images are requested like by fal's own client, which reads the same answers", async () => {
    bench.answer();
    const input = { prompt: 'A lighthouse', seed: 7 };
    const { data, requestId } = await falClient(bench.server.baseUrl).subscribe('fal-ai/flux/dev', { input });
    assert.deepEqual(data, result(bench.origin));
    assert.equal(typeof requestId, 'string');
    const asked = () =>
      bench.server.requests.map(({ method, url = '', body, headers }) => [
        method,
        url.split('?')[0],
        body,
        headers.authorization,
      ]);
    const theirs = asked();
    bench.answer();
    await bench.make({ request: imageJob({ seed: 7 }) });
    const ours = asked().slice(0, -1);
    assert.deepEqual(
      ours.map(([, , body]) => body && JSON.parse(String(body))),
      [{ prompt: 'A lighthouse', seed: 7 }, '', ''],
    );
    const places = (list: unknown[][]) => list.map(([method, url, , key]) => [method, url, key]);
    assert.deepEqual(places(ours), places(theirs));
    assert.equal(ours[0]?.[3], `Key ${apiKey}`);
  });

  it('fal images are downloaded without the key', async () => {
    bench.answer();
    await bench.make();
    const file = bench.server.requests.at(-1);
    assert.deepEqual([file?.url, file?.headers.authorization], ['/file.png', undefined]);
  });

  it('fal images have a number, a size and a format in the terms of their model', async () => {
    const prompt = 'A lighthouse';
    const parameters = { n: 2, size: '1536x1024', output_format: 'jpeg' };
    assert.deepEqual(await sent(parameters, 'fal-ai/flux/dev'), {
      prompt,
      num_images: 2,
      image_size: { width: 1536, height: 1024 },
      output_format: 'jpeg',
    });
    for (const model of ['fal-ai/imagen4/preview', 'fal-ai/nano-banana-2', 'fal-ai/flux-pro/kontext']) {
      const { aspect_ratio: shape, image_size: size } = (await sent(parameters, model)) as Record<string, unknown>;
      assert.deepEqual([shape, size], ['3:2', undefined], model);
    }
  });

  it('fal images of models whose types have no size or no format get none, and are refused by name for a format', async () => {
    // LumaPhotonInput, Recraft20bInput and DreaminaInput of @fal-ai/client: what they lack is passed over without a word.
    const prompt = 'A lighthouse';
    const image_size = { width: 1024, height: 1024 };
    for (const [model, expected] of [
      ['fal-ai/luma-photon', { prompt, aspect_ratio: '1:1' }],
      ['fal-ai/luma-photon/flash', { prompt, aspect_ratio: '1:1' }],
      ['fal-ai/recraft/v3/text-to-image', { prompt, image_size }],
      ['fal-ai/bytedance/dreamina/v3.1/text-to-image', { prompt, image_size }],
    ] as const) {
      assert.deepEqual(await sent({ size: '1024x1024', output_format: 'png' }, model), expected, model);
      const request = imageJob({ output_format: 'webp' });
      await assert.rejects(bench.make({ model, request }), { param: 'output_format' }, model);
      const target = { row: findVendorRow('fal') ?? assert.fail(), capability: 'image' as const, model };
      assert.equal(mediaFieldSupport(target, 'output_format'), 'rejected', model);
    }
  });

  it("fal images get the nearest aspect ratio of their model's list, which refuses all others", async () => {
    for (const [size, expected] of [
      ['1792x1024', '16:9'],
      ['1024x1792', '9:16'],
      ['1000x1000', '1:1'],
      ['2520x1080', '21:9'],
      ['1280x800', '16:10'],
      // Near none: the vendor's own refusal names its list.
      ['2000x1000', '2:1'],
    ]) {
      const { aspect_ratio: shape } = (await sent({ size }, 'fal-ai/nano-banana-2')) as Record<string, unknown>;
      assert.equal(shape, expected, size);
    }
  });

  it('fal images are edited from one image, or from several by models that accept them', async () => {
    const link = { image_url: 'https://example.com/room.jpg' };
    const upload = { file: 'one', name: 'x.png', type: 'image/png', bytes: 3 } as never;
    const dataUrl = `data:image/png;base64,${png.toString('base64')}`;
    const prompt = 'A lighthouse';
    const edit = { task: 'edit' } as const;
    assert.deepEqual(await sent({}, 'fal-ai/flux-pro/kontext', { ...edit, images: [upload] }), {
      prompt,
      image_url: dataUrl,
    });
    assert.deepEqual(await sent({}, 'fal-ai/nano-banana-2/edit', { ...edit, images: [link, upload] }), {
      prompt,
      image_urls: [link.image_url, dataUrl],
    });
    bench.answer();
    const request = imageJob({}, { ...edit, images: [link, link] });
    await assert.rejects(bench.make({ model: 'fal-ai/flux-pro/kontext', request }), { param: 'image' });
    await assert.rejects(bench.make({ request: imageJob({ output_compression: 5 }) }), { param: 'output_compression' });
    assert.equal(bench.server.requests.length, 0);
  });

  it('fal images deliver everything that was made', async () => {
    const images = [{ url: `${bench.origin}/file.png` }, { url: `${bench.origin}/file.png` }];
    bench.answer(({ url = '' }, response) => {
      if (url !== `/v1${requestPath}`) return false;
      sendJson(response, 200, JSON.stringify({ images }));
      return true;
    });
    const { files, saved } = memoryFiles();
    await bench.make({ files });
    assert.equal(saved.length, 2);
  });

  it('fal images are polled by the path from the queue, whatever host its links name', async () => {
    bench.answer(({ method }, response) => {
      const links = queued(requestPath, { status: 'IN_QUEUE' })('https://queue.fal.run');
      if (method === 'POST') sendJson(response, 200, JSON.stringify(links));
      return method === 'POST';
    });
    await bench.make();
    assert.equal(bench.server.requests[1]?.url, `/v1${requestPath}/status`);
    for (const path of ['/x', '/../requests/a', `${requestPath}/status`, '/a/b/requests/%2e%2e']) {
      bench.answer(({ method }, response) => {
        sendJson(response, 200, JSON.stringify({ response_url: `${bench.origin}${path}` }));
        return method === 'POST';
      });
      await assert.rejects(bench.make(), { code: 'outcome_unknown' }, path);
      assert.equal(bench.server.requests.length, 1);
    }
  });

  const endIn = (status: number, body: object): void =>
    bench.answer(({ url = '' }, response) => {
      if (url !== `/v1${requestPath}`) return false;
      sendJson(response, status, JSON.stringify(body));
      return true;
    });

  it('a fal image fails with the error of its request', async () => {
    const refused = { loc: ['body', 'prompt'], msg: 'It was flagged.', type: 'content_policy_violation' };
    for (const [status, body, expected] of [
      [422, { detail: [refused] }, { code: 'invalid_request_error', vendorCode: refused.type, param: 'prompt' }],
      [504, { detail: 'Request timed out', error_type: 'request_timeout' }, { code: 'timeout' }],
      [500, { detail: 'oh' }, { code: 'server_error' }],
      [200, { images: [] }, { code: 'server_error', message: /without images/ }],
      [200, { images: [{ url: 'x' }], has_nsfw_concepts: [true] }, { vendorCode: 'content_policy_violation' }],
      [200, {}, { code: 'server_error' }],
    ] as const) {
      endIn(status, body);
      await assert.rejects(bench.make(), expected, JSON.stringify(body));
      assert.equal(bench.posts.length, 1);
    }
  });

  it('a fal image survives resets, and troubles of the queue, while its result is fetched', async () => {
    for (const status of [undefined, 429, 500, 502, 503]) {
      let tries = 0;
      bench.answer(({ url = '' }, response) => {
        if (url !== `/v1${requestPath}` || ++tries > 2) return false;
        if (status === undefined) response.socket?.resetAndDestroy();
        else sendJson(response, status, '{}');
        return true;
      });
      await bench.make();
      assert.equal(tries, 3, String(status));
      bench.assertCreatedOnce();
    }
  });
});

describe('videos of fal', () => {
  const film = Buffer.concat([Buffer.from('000000186674797069736f6d', 'hex'), Buffer.from('the rest of a film')]);
  const path = `/fal-ai/veo3/requests/${id}`;
  let server: FixtureVendor;
  let vendor: Offering<'video'>;
  before(async () => {
    server = await startFixtureVendor();
    vendor = createFal({ name: 'fal', baseUrl: server.baseUrl, apiKey });
  });
  after(async () => {
    await vendor.close();
    await server.close();
  });

  const origin = (): string => new URL(server.baseUrl).origin;
  /** A server whose request is in this state, with this result. */
  const answer = (state: object, status = 200, body?: object): void => {
    server.requests.length = 0;
    server.answer((response, { method, url = '' }) => {
      if (method === 'POST' || url.includes('/status')) {
        sendJson(response, 200, JSON.stringify(queued(path, state)(origin())));
      } else if (url === '/film.mp4') {
        response.writeHead(200, { 'content-type': 'video/mp4', 'content-length': film.length }).end(film);
      } else {
        const made = { video: { url: `${origin()}/film.mp4`, content_type: 'video/mp4', file_name: 'output.mp4' } };
        sendJson(response, status, JSON.stringify(body ?? made));
      }
    });
  };
  const job = (fields: Partial<VideoJob> = {}): string =>
    JSON.stringify({ prompt: 'Waves', input: null, remixed: null, parameters: {}, ...fields });
  const create = (fields: Partial<VideoJob> = {}, model = 'fal-ai/veo3/fast'): Promise<string> =>
    vendor.video.create(callOf({ model, request: job(fields), files: memoryFiles({ one: png }).files }));
  const taskCall = (more: Partial<TaskCall> = {}): TaskCall => ({
    ...callOf({ model: 'fal-ai/veo3/fast' }),
    task: path.slice(1),
    ...more,
  });

  it("fal videos are created like by fal's own client, and named by their path in the queue", async () => {
    answer({ status: 'IN_QUEUE', queue_position: 0 });
    const input = {
      prompt: 'Waves',
      aspect_ratio: '16:9' as const,
      resolution: '720p' as const,
      duration: '8s' as const,
    };
    await falClient(server.baseUrl).queue.submit('fal-ai/veo3/fast', { input });
    assert.equal(await create({ size: '1280x720', seconds: '8', parameters: { user: 'someone' } }), path.slice(1));
    const [theirs, ours] = server.requests.map(({ method, url, body }) => [method, url, JSON.parse(body)]);
    assert.deepEqual(ours, theirs);
  });

  it('fal videos have a length and a first image in the terms of their model', async () => {
    answer({ status: 'IN_QUEUE' });
    const upload = { file: 'one', name: 'x.png', type: 'image/png', bytes: 3 } as never;
    await create(
      { seconds: '5', input: upload, parameters: { seed: 3 } },
      'fal-ai/kling-video/v2/master/image-to-video',
    );
    assert.deepEqual(JSON.parse(server.requests[0]?.body ?? ''), {
      prompt: 'Waves',
      duration: '5',
      image_url: `data:image/png;base64,${png.toString('base64')}`,
      seed: 3,
    });
    await create({ size: '720x1280', input: { image_url: 'https://example.com/a.png' } });
    assert.deepEqual(JSON.parse(server.requests[1]?.body ?? ''), {
      prompt: 'Waves',
      aspect_ratio: '9:16',
      resolution: '720p',
      image_url: 'https://example.com/a.png',
    });
    await assert.rejects(create({ remixed: { vendor: 'fal', task: 'x' } }), { code: 'invalid_request_error' });
    assert.equal(server.requests.length, 2);
  });

  it('a fal video is not created again when the answer is lost', async () => {
    server.requests.length = 0;
    server.answer((response) => response.socket?.resetAndDestroy());
    await assert.rejects(create(), { code: 'outcome_unknown' });
    assert.equal(server.requests.length, 1);
  });

  it('a fal video is polled until its request is completed, and then stored', async () => {
    for (const status of ['IN_QUEUE', 'IN_PROGRESS']) {
      answer({ status });
      assert.deepEqual(await vendor.video.poll(taskCall()), { status: 'running', progress: 0 });
    }
    answer({ status: 'COMPLETED' });
    assert.deepEqual(await vendor.video.poll(taskCall()), { status: 'completed' });
    const { files, saved } = memoryFiles();
    const stored = await vendor.video.fetch(taskCall({ files }), 'video');
    assert.deepEqual(stored, { file: 'file-1', type: 'video/mp4', bytes: film.length });
    assert.deepEqual(saved, [{ type: 'video/mp4', content: film }]);
    assert.equal(await vendor.video.fetch(taskCall({ files }), 'thumbnail'), undefined);
  });

  it('a fal video is made although the queue is in trouble while its result is fetched', async () => {
    for (const status of [500, 200]) {
      for (const step of ['poll', 'fetch'] as const) {
        let tries = 0;
        server.answer((response, { url = '' }) => {
          if (url.includes('/status')) {
            sendJson(response, 200, JSON.stringify(queued(path, { status: 'COMPLETED' })(origin())));
          } else if (url === '/film.mp4') {
            response.writeHead(200, { 'content-type': 'video/mp4', 'content-length': film.length }).end(film);
          } else if (++tries <= 3) {
            sendJson(response, status, '<html>Try again later</html>');
          } else {
            sendJson(response, 200, JSON.stringify({ video: { url: `${origin()}/film.mp4` } }));
          }
        });
        if (step === 'poll') assert.deepEqual(await vendor.video.poll(taskCall()), { status: 'completed' });
        else assert.ok(await vendor.video.fetch(taskCall({ files: memoryFiles().files }), 'video'));
        assert.equal(tries, 4);
      }
    }
  });

  it('a fal video whose result cannot be had for longer is asked for again at the next poll', async () => {
    answer({ status: 'COMPLETED' }, 500, { detail: 'Internal Server Error' });
    await assert.rejects(vendor.video.poll(taskCall()), { code: 'server_error' });
    answer({ status: 'COMPLETED' });
    assert.deepEqual(await vendor.video.poll(taskCall()), { status: 'completed' });
  });

  it('a fal video fails with the error of its request, and is polled again after a transport error', async () => {
    const failed = async (state: object, status: number, body: object) => {
      answer({ status: 'COMPLETED', ...state }, status, body);
      const answered = await vendor.video.poll(taskCall());
      assert.ok(answered.status === 'failed', JSON.stringify(body));
      return answered.error.code;
    };
    assert.equal(await failed({}, 422, { detail: [{ loc: ['body'], msg: 'no', type: 'x' }] }), 'invalid_request_error');
    assert.equal(await failed({}, 500, { detail: 'oh', error_type: 'runner_server_error' }), 'server_error');
    assert.equal(await failed({}, 500, { detail: [{ loc: ['body'], msg: 'oh', type: 'x' }] }), 'server_error');
    assert.equal(await failed({}, 504, { detail: 'late', error_type: 'request_timeout' }), 'timeout');
    // Without a film there is nothing to ask for again.
    assert.equal(await failed({}, 200, { video: null }), 'server_error');
    const gone = { error: 'gone', error_type: 'runner_disconnected' };
    assert.equal(await failed(gone, 503, { detail: 'gone' }), 'service_unavailable');
    answer({ status: 'COMPLETED' }, 503, {});
    await assert.rejects(vendor.video.poll(taskCall()), { code: 'service_unavailable' });
    answer({ status: 'LATER' });
    await assert.rejects(vendor.video.poll(taskCall()), { code: 'server_error' });
    server.answer((response) => sendJson(response, 404, '{}'));
    await assert.rejects(vendor.video.poll(taskCall()), { code: 'not_found' });
  });

  it("a fal video that nobody wants is cancelled like by fal's own client", async () => {
    server.requests.length = 0;
    server.answer((response) => sendJson(response, 202, '{"status":"CANCELLATION_REQUESTED"}'));
    await falClient(server.baseUrl).queue.cancel('fal-ai/veo3/fast', { requestId: id });
    await vendor.video.discard?.(taskCall());
    const [theirs, ours] = server.requests.map(({ method, url, headers }) => [method, url, headers.authorization]);
    assert.deepEqual(ours, theirs);
    server.answer((response) => sendJson(response, 404, '{"status":"NOT_FOUND"}'));
    await assert.rejects(vendor.video.discard?.(taskCall()) as Promise<void>, { code: 'not_found' });
  });

  it('a fal video that is too large to store is given up', async () => {
    answer({ status: 'COMPLETED' });
    const download = createFilmDownloader(server.baseUrl, 10);
    const error = await download(`${origin()}/film.mp4`, callOf()).then(
      () => assert.fail('it was fetched'),
      (thrown: unknown) => thrown,
    );
    assert.ok(error instanceof ApiError && error.code === 'request_too_large');
  });
});
