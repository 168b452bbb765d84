import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import Replicate from 'replicate';
import type { ImageJob } from '../../../shared/capabilities/image.ts';
import type { VideoJob } from '../../../shared/capabilities/video.ts';
import { createReplicate } from '../../../workers/vendors/replicate/replicate.ts';
import type { Offering, TaskCall } from '../../../workers/vendors/vendor.ts';
import {
  callOf,
  type FixtureVendor,
  type ReceivedRequest,
  sendJson,
  startFixtureVendor,
} from '../contracts/fixture-vendor.ts';
import { apiKey, imageJob, png } from '../contracts/image-vendor-contract.ts';
import { memoryFiles } from '../contracts/memory-files.ts';
import {
  describePolledImageVendor,
  PolledImageBench,
  type PolledImageVendor,
} from '../contracts/polled-image-vendor-contract.ts';
import { describePolledVideoVendor } from '../contracts/video-vendor-contract.ts';

// As documented on 2026-11-21: https://replicate.com/docs/reference/http (predictions.create, models.predictions.create,
// predictions.get, predictions.cancel), https://replicate.com/docs/topics/predictions/create-a-prediction (Prefer: wait),
// https://replicate.com/docs/reference/error-codes. The vendor's own client, replicate, is driven against them below.
const id = 'gm3qorzdhgbfurvjtvhg6dckhu';
const prediction =
  (state: object) =>
  (origin: string): object => ({
    id,
    model: 'black-forest-labs/flux-schnell',
    version: 'hidden',
    input: {},
    logs: '',
    output: null,
    data_removed: false,
    error: null,
    source: 'api',
    status: 'starting',
    created_at: '2026-11-21T19:34:16.134Z',
    urls: {
      cancel: `${origin}/v1/predictions/${id}/cancel`,
      get: `${origin}/v1/predictions/${id}`,
      web: `https://replicate.com/p/${id}`,
    },
    ...state,
  });
const metrics = { predict_time: 0.54, total_time: 0.6 };
const succeeded = (origin: string, output: unknown = [`${origin}/file.png`]): object =>
  prediction({ status: 'succeeded', output, metrics })(origin);

const wire: PolledImageVendor = {
  create: (baseUrl) => createReplicate({ name: 'replicate', baseUrl, apiKey }),
  model: 'black-forest-labs/flux-schnell',
  begun: prediction({ status: 'starting' }),
  running: prediction({ status: 'processing' }),
  done: succeeded,
  statePath: /^\/v1\/predictions\/\w+$/,
  discarded: ['POST', /^\/v1\/predictions\/\w+\/cancel$/],
};

/** What a server was asked: what it is about, and with whose key. */
const asked = (requests: readonly ReceivedRequest[]): unknown[] =>
  requests.map(({ method, url, body, headers }) => [
    method,
    url,
    body === '' ? '' : JSON.parse(body),
    headers.authorization,
  ]);

describePolledImageVendor('Replicate', wire);

describe('images of Replicate', () => {
  const bench = new PolledImageBench(wire);

  const sent = async (parameters: object, model: string, job: Partial<ImageJob> = {}): Promise<unknown> => {
    bench.answer();
    const { files } = memoryFiles({ one: png });
    await bench.make({ model, request: imageJob(parameters, job), files });
    return (bench.posted as { input: unknown }).input;
  };

  it("Replicate images are requested like by Replicate's own client, which reads the same answers", async () => {
    const client = new Replicate({ auth: apiKey, baseUrl: bench.server.baseUrl, useFileOutput: false });
    for (const model of [
      'black-forest-labs/flux-schnell',
      'stability-ai/sdxl:7762fd07cf82c948538e41f63f77d685',
    ] as const) {
      bench.answer();
      const output = await client.run(model, { input: { prompt: 'A lighthouse', seed: 7 } });
      assert.deepEqual(output, [`${bench.origin}/file.png`]);
      const theirs = asked(bench.server.requests);
      assert.match(String(bench.server.requests[0]?.headers.prefer), /^wait/);
      bench.answer();
      await bench.make({ model, request: imageJob({ seed: 7 }) });
      const ours = asked(bench.server.requests.slice(0, -1)) as unknown[][];
      const inOrder = (list: unknown[][]) => list.map(([method, url, , key]) => [method, url, key]);
      assert.deepEqual(inOrder(ours), inOrder(theirs as unknown[][]));
      assert.deepEqual(ours[0]?.[2], (theirs as unknown[][])[0]?.[2]);
      assert.deepEqual(
        bench.server.requests.map(({ headers }) => headers.prefer),
        ['wait=5', undefined, undefined],
      );
    }
  });

  it('Replicate images need no poll when the vendor returns the image at once', async () => {
    bench.answer(({ method }, response) => {
      if (method === 'POST') sendJson(response, 201, JSON.stringify(succeeded(bench.origin)));
      return method === 'POST';
    });
    await bench.make();
    assert.deepEqual(
      bench.server.requests.map(({ method, url }) => [method, url]),
      [
        ['POST', '/v1/models/black-forest-labs/flux-schnell/predictions'],
        ['GET', '/file.png'],
      ],
    );
    assert.equal(bench.server.requests[1]?.headers.authorization, undefined);
  });

  it('Replicate images may be a single link or a data URL in the answer', async () => {
    for (const output of [`${bench.origin}/file.png`, `data:image/png;base64,${png.toString('base64')}`]) {
      bench.answer(({ method }, response) => {
        if (method === 'POST') sendJson(response, 201, JSON.stringify(succeeded(bench.origin, output)));
        return method === 'POST';
      });
      const { files, saved } = memoryFiles();
      await bench.make({ files });
      assert.deepEqual(saved, [{ type: 'image/png', content: png }]);
    }
  });

  it('Replicate images have a number, a shape, a format and a quality in the terms of their model', async () => {
    const prompt = 'A lighthouse';
    const parameters = { size: '1536x1024', output_format: 'jpeg', output_compression: 70 };
    assert.deepEqual(await sent({ ...parameters, n: 2 }, 'black-forest-labs/flux-schnell'), {
      prompt,
      num_outputs: 2,
      aspect_ratio: '3:2',
      output_format: 'jpg',
      output_quality: 70,
    });
    // The list of the model has no 7:4.
    const wide = await sent({ size: '1792x1024' }, 'black-forest-labs/flux-1.1-pro');
    assert.deepEqual(wide, { prompt, aspect_ratio: '16:9' });
    assert.deepEqual(await sent({ size: '1536x1024' }, 'stability-ai/sdxl:7762fd07'), {
      prompt,
      width: 1536,
      height: 1024,
    });
    bench.answer();
    const model = 'black-forest-labs/flux-1.1-pro';
    await assert.rejects(bench.make({ model, request: imageJob({ n: 2 }) }), { param: 'n' });
    assert.equal(bench.server.requests.length, 0);
  });

  it('Replicate images are edited with the field of their model', async () => {
    const prompt = 'A lighthouse';
    const edit = { task: 'edit' } as const;
    const link = { image_url: 'https://example.com/room.jpg' };
    const upload = { file: 'one', name: 'x.png', type: 'image/png', bytes: 3 } as never;
    const dataUrl = `data:image/png;base64,${png.toString('base64')}`;
    for (const [model, images, fields] of [
      ['black-forest-labs/flux-kontext-pro', [upload], { input_image: dataUrl }],
      ['black-forest-labs/flux-2-pro', [link, upload], { input_images: [link.image_url, dataUrl] }],
      ['google/nano-banana', [link, upload], { image_input: [link.image_url, dataUrl] }],
      ['black-forest-labs/flux-dev', [link], { image: link.image_url }],
    ] as const) {
      assert.deepEqual(await sent({}, model, { ...edit, images }), { prompt, ...fields });
    }
    bench.answer();
    await assert.rejects(bench.make({ request: imageJob({}, { ...edit, images: [link, link] }) }), { param: 'image' });
    assert.equal(bench.server.requests.length, 0);
  });

  it('a Replicate image fails with the error of its prediction', async () => {
    for (const [state, expected] of [
      [{ status: 'failed', error: 'NSFW content detected.' }, { vendorCode: 'content_policy_violation' }],
      [{ status: 'failed', error: 'It was flagged as sensitive. (E005)' }, { code: 'invalid_request_error' }],
      [
        { status: 'failed', error: 'CUDA out of memory' },
        { code: 'server_error', message: 'CUDA out of memory' },
      ],
      [{ status: 'failed' }, { code: 'server_error' }],
      [{ status: 'canceled' }, { code: 'server_error' }],
      [{ status: 'aborted' }, { code: 'server_error' }],
      [{ status: 'something new' }, { code: 'server_error' }],
      [
        { status: 'succeeded', output: [] },
        { code: 'server_error', message: /without images/ },
      ],
      [{ status: 'succeeded', output: [{}] }, { code: 'server_error' }],
    ] as const) {
      bench.answer(({ method }, response) => {
        if (method === 'GET') sendJson(response, 200, JSON.stringify(prediction(state)(bench.origin)));
        return method === 'GET';
      });
      await assert.rejects(bench.make(), expected, JSON.stringify(state));
      assert.equal(bench.posts.length, 1);
    }
  });

  it('an image of Replicate that fails shows its caller no key, although the error of its prediction repeats that', async () => {
    for (const error of [`CUDA: ${apiKey} is out of memory`, `CUDA: ${apiKey} was flagged as sensitive`]) {
      bench.answer(({ method }, response) => {
        if (method === 'GET')
          sendJson(response, 200, JSON.stringify(prediction({ status: 'failed', error })(bench.origin)));
        return method === 'GET';
      });
      await assert.rejects(bench.make(), { message: error.replace(apiKey, '[key]') });
    }
  });

  it('Replicate images are not polled under a malformed id', async () => {
    for (const name of ['../account', '', 7, null]) {
      bench.answer((_request, response) => {
        sendJson(response, 201, JSON.stringify({ id: name, status: 'starting' }));
        return true;
      });
      await assert.rejects(bench.make(), { code: 'outcome_unknown' }, String(name));
      assert.equal(bench.server.requests.length, 1);
    }
  });
});

const vendorsOrigin = 'https://api.replicate.com';

describePolledVideoVendor('replicate', {
  create: (baseUrl) => createReplicate({ name: 'replicate', baseUrl, apiKey }),
  secrets: [apiKey],
  model: 'google/veo-3-fast',
  begun: prediction({})(vendorsOrigin),
  task: id,
  statePath: `/predictions/${id}`,
  discarded: ['POST', `/predictions/${id}/cancel`],
  running: prediction({ status: 'processing' })(vendorsOrigin),
  done: (output) => prediction({ status: 'succeeded', output })(vendorsOrigin),
  refused: prediction({ status: 'failed', error: 'It was flagged as sensitive. (E005)' })(vendorsOrigin),
  broken: prediction({ status: 'failed', error: 'No memory for a lighthouse' })(vendorsOrigin),
  error: (_, detail) => ({ detail }),
});

describe('videos of Replicate', () => {
  const film = Buffer.concat([Buffer.from('000000186674797069736f6d', 'hex'), Buffer.from('the rest of a film')]);
  let server: FixtureVendor;
  let vendor: Offering<'video'>;
  before(async () => {
    server = await startFixtureVendor();
    vendor = createReplicate({ name: 'replicate', baseUrl: server.baseUrl, apiKey });
  });
  after(async () => {
    await vendor.close();
    await server.close();
  });

  const origin = (): string => new URL(server.baseUrl).origin;
  const answer = (state: object): void => {
    server.requests.length = 0;
    server.answer((response, { url }) => {
      if (url === '/film.mp4') response.writeHead(200, { 'content-type': 'video/mp4' }).end(film);
      else sendJson(response, 200, JSON.stringify(prediction(state)(origin())));
    });
  };
  const create = (fields: Partial<VideoJob> = {}): Promise<string> => {
    const request = JSON.stringify({ prompt: 'Waves', input: null, remixed: null, parameters: {}, ...fields });
    return vendor.video.create(callOf({ model: 'google/veo-3-fast', request, files: memoryFiles({ one: png }).files }));
  };
  const taskCall = (more: Partial<TaskCall> = {}): TaskCall => ({
    ...callOf({ model: 'google/veo-3-fast' }),
    task: id,
    ...more,
  });

  it("Replicate videos are created, polled and cancelled like by Replicate's own client", async () => {
    const client = new Replicate({ auth: apiKey, baseUrl: server.baseUrl });
    answer({});
    const input = { prompt: 'Waves', aspect_ratio: '16:9', resolution: '720p', duration: 8 };
    const { id: name } = await client.predictions.create({ model: 'google/veo-3-fast', input });
    await client.predictions.get(name);
    await client.predictions.cancel(name);
    const theirs = asked(server.requests);
    answer({});
    assert.equal(await create({ size: '1280x720', seconds: '8', parameters: { user: 'someone' } }), name);
    assert.deepEqual(await vendor.video.poll(taskCall()), { status: 'running', progress: 0 });
    await vendor.video.discard?.(taskCall());
    const [created, polled, cancelled] = asked(server.requests) as unknown[][];
    assert.deepEqual([created, polled], theirs.slice(0, 2));
    assert.deepEqual(cancelled?.slice(0, 2), (theirs[2] as unknown[]).slice(0, 2));
    assert.equal(server.requests[0]?.headers.prefer, undefined);
  });

  it('Replicate videos start with an image, and cannot be remixed', async () => {
    answer({});
    const upload = { file: 'one', name: 'x.png', type: 'image/png', bytes: 3 } as never;
    await create({ input: upload, parameters: { seed: 3 } });
    assert.deepEqual(JSON.parse(server.requests[0]?.body ?? ''), {
      input: { prompt: 'Waves', image: `data:image/png;base64,${png.toString('base64')}`, seed: 3 },
    });
    await assert.rejects(create({ remixed: { vendor: 'replicate', task: 'x' } }), { code: 'invalid_request_error' });
    assert.equal(server.requests.length, 1);
  });

  it('a Replicate video is not created again when the answer is lost', async () => {
    server.requests.length = 0;
    server.answer((response) => response.socket?.resetAndDestroy());
    await assert.rejects(create(), { code: 'outcome_unknown' });
    assert.equal(server.requests.length, 1);
  });

  it('Replicate videos are stored when they are done', async () => {
    for (const output of [`${origin()}/film.mp4`, [`${origin()}/film.mp4`]]) {
      answer({ status: 'succeeded', output });
      assert.deepEqual(await vendor.video.poll(taskCall()), { status: 'completed' });
      const { files, saved } = memoryFiles();
      const stored = await vendor.video.fetch(taskCall({ files }), 'video');
      assert.deepEqual(stored, { file: 'file-1', type: 'video/mp4', bytes: film.length });
      assert.deepEqual(saved, [{ type: 'video/mp4', content: film }]);
      assert.equal(await vendor.video.fetch(taskCall({ files }), 'spritesheet'), undefined);
    }
  });

  it('a Replicate video fails with the error of its prediction, and is polled again after a transport error', async () => {
    for (const [state, code] of [
      [{ status: 'failed', error: 'The prompt was flagged as sensitive (E005)' }, 'invalid_request_error'],
      [{ status: 'failed', error: 'oh' }, 'server_error'],
      [{ status: 'canceled' }, 'server_error'],
      [{ status: 'succeeded', output: null }, 'server_error'],
    ] as const) {
      answer(state);
      const answered = await vendor.video.poll(taskCall());
      assert.ok(answered.status === 'failed', JSON.stringify(state));
      assert.equal(answered.error.code, code);
    }
    server.answer((response) => sendJson(response, 500, '{}'));
    await assert.rejects(vendor.video.poll(taskCall()), { code: 'server_error' });
    server.answer((response) => sendJson(response, 404, '{}'));
    await assert.rejects(vendor.video.poll(taskCall()), { code: 'not_found' });
    server.answer((response) => sendJson(response, 200, '{"sta'));
    await assert.rejects(vendor.video.poll(taskCall()), { code: 'server_error' });
  });
});
