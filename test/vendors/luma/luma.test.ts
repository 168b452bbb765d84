import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import LumaAI from 'lumaai';
import { createLuma } from '../../../workers/vendors/luma/luma.ts';
import { type ReceivedRequest, sendJson } from '../contracts/fixture-vendor.ts';
import { apiKey as imageApiKey, imageJob } from '../contracts/image-vendor-contract.ts';
import {
  describePolledImageVendor,
  PolledImageBench,
  type PolledImageVendor,
} from '../contracts/polled-image-vendor-contract.ts';
import {
  describePolledVideoVendor,
  type PolledVideoVendor,
  VideoVendorBench,
} from '../contracts/video-vendor-contract.ts';

// As documented on 2026-11-21: https://docs.lumalabs.ai/docs/video-generation, …/docs/image-generation (creations, generations)
// and …/docs/errors (failures). The vendor's own client, lumaai, is driven against them below.
const apiKey = 'luma-0123456789abcdef0123456789abcdef';
const id = '3ce343aa-5746-4ab3-b167-4e29f83d3f42';
const generation = (state: string, more: object = {}): object => ({
  ...{ id, generation_type: 'video', state, failure_reason: null, created_at: '2026-11-21T10:00:00.388000Z' },
  ...{ assets: null, model: 'ray-2', request: { generation_type: 'video', model: 'ray-2' } },
  ...more,
});
const failed = (reason: string | null): object => generation('failed', { failure_reason: reason });
const wire: PolledVideoVendor = {
  create: (baseUrl) => createLuma({ name: 'luma', baseUrl, apiKey }),
  secrets: [apiKey],
  model: 'ray-2',
  begun: generation('queued'),
  task: id,
  statePath: `/generations/${id}`,
  running: generation('dreaming'),
  done: (video) => generation('completed', { assets: { video, image: null, progress_video: null } }),
  refused: failed('Advanced prompt moderation failed'),
  broken: failed('Job failed: a lighthouse'),
  error: (_, detail) => ({ detail }),
};

const imageWire: PolledImageVendor = {
  create: (baseUrl) => createLuma({ name: 'luma', baseUrl, apiKey: imageApiKey }),
  model: 'photon-1',
  begun: () => generation('queued', { generation_type: 'image' }),
  running: () => generation('dreaming', { generation_type: 'image' }),
  done: (origin) => generation('completed', { generation_type: 'image', assets: { image: `${origin}/file.png` } }),
  statePath: /\/generations\/[\w-]+$/,
  discarded: ['DELETE', /\/generations\/[\w-]{36}$/],
};

describePolledVideoVendor('luma', wire);
describePolledImageVendor('luma', imageWire);

const places = (requests: readonly ReceivedRequest[]) =>
  requests.map(({ method, url, body, headers }) => [method, url, body && JSON.parse(body), headers.authorization]);

describe('videos of Luma', () => {
  const bench = new VideoVendorBench(wire);
  beforeEach(() => bench.answer());

  it("Luma videos are requested like by Luma's own client, which reads the same answers", async () => {
    const client = new LumaAI({ authToken: apiKey, baseURL: bench.server.baseUrl, maxRetries: 0 });
    const url = 'https://example.com/a.png';
    const begun = await client.generations.video.create({
      ...{
        model: 'ray-2',
        prompt: 'A lighthouse',
        aspect_ratio: '16:9',
        resolution: '720p',
        duration: '5s',
        loop: true,
      },
      keyframes: { frame0: { type: 'image', url } },
    });
    assert.equal(begun.id, id);
    const made = await client.generations.get(id);
    assert.deepEqual([made.state, made.assets?.video], ['completed', bench.filmLink]);
    await client.generations.delete(id);
    const theirs = places(bench.server.requests);
    bench.answer();
    await bench.begin({ size: '1280x720', seconds: '5', input: { image_url: url }, parameters: { loop: true } });
    await bench.poll();
    await bench.vendor.video.discard?.(bench.taskCall());
    assert.deepEqual(places(bench.server.requests), theirs);
  });

  it("Luma videos have a shape and a resolution in Luma's terms", async () => {
    for (const [size, aspect_ratio, resolution] of [
      ['1080x1920', '9:16', '1080p'],
      ['960x540', '16:9', '540p'],
      ['3840x2160', '16:9', '4k'],
      ['1680x720', '21:9', '720p'],
    ] as const) {
      await bench.begin({ size });
      assert.deepEqual(bench.posted, { model: 'ray-2', prompt: 'A lighthouse', aspect_ratio, resolution });
    }
    bench.answer();
    assert.equal((await bench.failure(bench.begin({ size: '1000x720' }))).param, 'size');
    assert.equal(bench.server.requests.length, 0);
  });

  it('Luma videos start with a linked image, beside their last frame, and reject uploaded images', async () => {
    const frame1 = { type: 'image', url: 'https://example.com/b.png' };
    await bench.begin({ input: { image_url: 'https://example.com/a.png' }, parameters: { keyframes: { frame1 } } });
    assert.deepEqual((bench.posted as { keyframes: unknown }).keyframes, {
      frame0: { type: 'image', url: 'https://example.com/a.png' },
      frame1,
    });
    bench.answer();
    const upload = { file: 'one', name: 'x.png', type: 'image/png', bytes: 8 } as never;
    for (const input of [upload, { image_url: 'data:image/png;base64,AAAA' }]) {
      const error = await bench.failure(bench.begin({ input }));
      assert.deepEqual([error.code, error.param], ['invalid_request_error', 'input_reference']);
    }
    assert.equal(bench.server.requests.length, 0);
  });

  it('a Luma video fails with the reason of its generation', async () => {
    for (const [state, code, param, vendorCode] of [
      [failed('Contains blacklisted words'), 'invalid_request_error', null, 'content_policy_violation'],
      [failed('Frame moderation failed'), 'invalid_request_error', null, 'content_policy_violation'],
      [failed('Failed to read user input frames'), 'invalid_request_error', 'input_reference', null],
      [failed('Error dispatching job'), 'server_error', null, null],
      [failed(null), 'server_error', null, null],
      [generation('completed', { assets: { video: null } }), 'server_error', null, null],
      [generation('completed'), 'server_error', null, null],
    ] as const) {
      bench.state(state);
      const polled = await bench.poll();
      assert.ok(polled.status === 'failed', JSON.stringify(state));
      const { error } = polled;
      assert.deepEqual([error.code, error.param, error.vendorCode], [code, param, vendorCode], JSON.stringify(state));
    }
  });

  it('Luma videos are unavailable with 503 when the operator has no credits left', async () => {
    bench.answer((_, response) => {
      sendJson(response, 400, JSON.stringify({ detail: 'Insufficient credits' }));
      return true;
    });
    const error = await bench.failure(bench.begin());
    assert.deepEqual([error.code, error.vendorStatus], ['service_unavailable', 402]);
  });
});

describe('images of Luma', () => {
  const bench = new PolledImageBench(imageWire);
  beforeEach(() => bench.answer());

  it("Luma images are requested like by Luma's own client, which reads the same answers", async () => {
    const client = new LumaAI({ authToken: imageApiKey, baseURL: bench.server.baseUrl, maxRetries: 0 });
    await client.generations.image.create({
      ...{ model: 'photon-1', prompt: 'A lighthouse', aspect_ratio: '3:4', format: 'jpg' },
    });
    const made = await client.generations.get(id);
    assert.deepEqual([made.state, made.assets?.image], ['completed', `${bench.origin}/file.png`]);
    const theirs = places(bench.server.requests);
    bench.answer();
    await bench.make({ request: imageJob({ size: '768x1024', output_format: 'jpeg', n: 1 }) });
    assert.deepEqual(places(bench.server.requests.slice(0, -1)), theirs);
    const file = bench.server.requests.at(-1);
    assert.deepEqual([file?.url, file?.headers.authorization], ['/file.png', undefined]);
  });

  it('Luma rejects unsupported image parameters by name, without a call', async () => {
    for (const [param, parameters, job] of [
      ['callback_url', { callback_url: 'https://example.com/mine' }, {}],
      ['n', { n: 2 }, {}],
      ['size', { size: '1536x1024' }, {}],
      ['output_format', { output_format: 'webp' }, {}],
      ['output_compression', { output_compression: 5 }, {}],
      ['image', {}, { task: 'edit', images: [{ image_url: 'https://example.com/a.png' }] }],
    ] as const) {
      const request = imageJob(parameters, job as object);
      await assert.rejects(bench.make({ request }), { code: 'invalid_request_error', param });
    }
    assert.equal(bench.server.requests.length, 0);
  });

  it('a Luma image fails with the reason of its generation', async () => {
    for (const [state, expected] of [
      [failed('Advanced prompt moderation failed'), { vendorCode: 'content_policy_violation' }],
      [failed('Job failed'), { code: 'server_error' }],
      [generation('completed', { assets: {} }), { code: 'server_error', message: /without images/ }],
      [generation('later'), { code: 'server_error' }],
    ] as const) {
      bench.answer(({ method }, response) => {
        if (method === 'POST') return false;
        sendJson(response, 200, JSON.stringify(state));
        return true;
      });
      await assert.rejects(bench.make(), expected, JSON.stringify(state));
      assert.equal(bench.posts.length, 1);
    }
  });
});
