import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ImageJob } from '../../../shared/capabilities/image.ts';
import { createBlackForestLabs, isOwnAddress } from '../../../workers/vendors/black-forest-labs/black-forest-labs.ts';
import { sendJson, startFixtureVendor } from '../contracts/fixture-vendor.ts';
import { apiKey, imageJob, png } from '../contracts/image-vendor-contract.ts';
import { memoryFiles } from '../contracts/memory-files.ts';
import {
  describePolledImageVendor,
  PolledImageBench,
  type PolledImageVendor,
} from '../contracts/polled-image-vendor-contract.ts';

// As documented on 2026-11-21: https://docs.bfl.ai/quick_start/generating_images (creation and result),
// https://docs.bfl.ai/api_integration/integration_guidelines (the polling link), https://docs.bfl.ai/api_integration/errors
// (states). The vendor has no npm SDK: these fixtures rest on its documents alone.
const id = 'b9b172a8-e39c-47b2-8f1a-cb8925f3532e';
const wire: PolledImageVendor = {
  create: (baseUrl) => createBlackForestLabs({ name: 'black-forest-labs', baseUrl, apiKey }),
  model: 'flux-2-pro',
  begun: (origin) => ({ id, polling_url: `${origin}/v1/get_result?id=${id}`, cost: 3, input_mp: 0, output_mp: 1.05 }),
  running: () => ({ id, status: 'Pending', result: null, progress: null, details: null, preview: null }),
  done: (origin) => ({
    id,
    status: 'Ready',
    result: {
      sample: `${origin}/file.png`,
      prompt: 'A lighthouse',
      seed: 1234567890,
      start_time: 1748764800.1,
      end_time: 1748764804.2,
      duration: 4.1,
    },
    progress: null,
    details: null,
  }),
  statePath: /^\/v1\/get_result$/,
};

describePolledImageVendor('Black Forest Labs', wire);

describe('images of Black Forest Labs', () => {
  const bench = new PolledImageBench(wire);

  /** What the vendor is sent for a job. */
  const sent = async (parameters: object, model = 'flux-2-pro', job: Partial<ImageJob> = {}): Promise<unknown> => {
    bench.answer();
    const { files } = memoryFiles({ one: png, two: Buffer.from('two') });
    await bench.make({ model, request: imageJob(parameters, job), files });
    return bench.posted;
  };

  it("Black Forest Labs images are created at the model's path with x-key, and polled at the vendor's link", async () => {
    bench.answer();
    await bench.make();
    const [created, polled, file] = bench.server.requests;
    assert.deepEqual([created?.method, created?.url], ['POST', '/v1/flux-2-pro']);
    assert.deepEqual([polled?.method, polled?.url], ['GET', `/v1/get_result?id=${id}`]);
    assert.deepEqual([created?.headers['x-key'], polled?.headers['x-key']], [apiKey, apiKey]);
    assert.deepEqual([file?.url, file?.headers['x-key']], ['/file.png', undefined]);
  });

  it('Black Forest Labs images get a width and height, or an aspect ratio for models without sizes', async () => {
    const prompt = 'A lighthouse';
    assert.deepEqual(await sent({ size: '1536x1024', output_format: 'png' }), {
      prompt,
      width: 1536,
      height: 1024,
      output_format: 'png',
    });
    for (const model of ['flux-kontext-pro', 'flux-kontext-max', 'flux-pro-1.1-ultra']) {
      assert.deepEqual(await sent({ size: '1536x1024' }, model), { prompt, aspect_ratio: '3:2' });
    }
    assert.deepEqual(await sent({ size: '1792x1024' }, 'flux-kontext-pro'), { prompt, aspect_ratio: '7:4' });
  });

  it('Black Forest Labs images are edited from uploads in base64, or from links and data URLs', async () => {
    const upload = (file: string) => ({ file, name: 'x.png', type: 'image/png', bytes: 3 }) as never;
    const edit = { task: 'edit' } as const;
    assert.deepEqual(await sent({}, 'flux-2-pro', { ...edit, images: [upload('one'), upload('two')] }), {
      prompt: 'A lighthouse',
      input_image: png.toString('base64'),
      input_image_2: Buffer.from('two').toString('base64'),
    });
    const images = [
      { image_url: 'https://example.com/room.jpg' },
      { image_url: `data:image/png;base64,${png.toString('base64')}` },
    ];
    assert.deepEqual(await sent({}, 'flux-kontext-pro', { ...edit, images }), {
      prompt: 'A lighthouse',
      input_image: 'https://example.com/room.jpg',
      input_image_2: png.toString('base64'),
    });
  });

  it('Black Forest Labs rejects unsupported image parameters by name, without a call', async () => {
    bench.answer();
    const image = { image_url: 'https://example.com/a.png' };
    const nine = Array.from({ length: 9 }, () => image);
    for (const [model, request, param] of [
      ['flux-2-pro', imageJob({ n: 2 }), 'n'],
      ['flux-2-pro', imageJob({ webhook_url: 'https://example.com/mine' }), 'webhook_url'],
      ['flux-2-pro', imageJob({ output_compression: 50 }), 'output_compression'],
      ['flux-2-pro', imageJob({}, { task: 'edit', images: nine }), 'image'],
      ['flux-pro-1.1', imageJob({}, { task: 'edit', images: [image] }), 'image'],
      ['flux-dev', imageJob({}, { task: 'edit', images: [image] }), 'image'],
    ] as const) {
      await assert.rejects(bench.make({ model, request }), { code: 'invalid_request_error', param });
    }
    assert.equal(bench.server.requests.length, 0);
  });

  const endIn = (status: string, result: unknown = null): void =>
    bench.answer(({ method }, response) => {
      if (method === 'GET') sendJson(response, 200, JSON.stringify({ id, status, result }));
      return method === 'GET';
    });

  it('a Black Forest Labs image fails with the state of its task', async () => {
    for (const [status, expected] of [
      ['Request Moderated', { code: 'invalid_request_error', vendorCode: 'content_policy_violation' }],
      ['Content Moderated', { code: 'invalid_request_error', vendorCode: 'content_policy_violation' }],
      ['Task not found', { code: 'outcome_unknown' }],
      ['Error', { code: 'server_error' }],
      ['Something new', { code: 'server_error' }],
      ['Ready', { code: 'server_error', message: /without images/ }],
    ] as const) {
      endIn(status);
      await assert.rejects(bench.make(), expected, status);
    }
  });

  it("a Black Forest Labs polling link is trusted only at the vendor's own regions over HTTPS", () => {
    const isOwn = (link: string, base = 'https://api.bfl.ai/v1') => isOwnAddress(new URL(link), new URL(base));
    for (const link of ['https://api.bfl.ai/v1/get_result?id=1', 'https://api.us1.bfl.ai/v1/get_result?id=1']) {
      assert.equal(isOwn(link), true, link);
    }
    for (const link of [
      'http://api.us1.bfl.ai/',
      'https://api.us1.bfl.ai:8443/',
      'https://evilbfl.ai/',
      'https://bfl.ai.example.com/',
      'https://example.com/.bfl.ai',
      'https://api.bfl.ai@example.com/',
      'https://127.0.0.1/',
    ]) {
      assert.equal(isOwn(link), false, link);
    }
    assert.equal(isOwn('https://api.us1.bfl.ai/', 'https://proxy.example.com/v1'), false);
    assert.equal(isOwn('https://proxy.example.com/get', 'https://proxy.example.com/v1'), true);
  });

  it("Black Forest Labs never sends the key to a polling link outside the vendor's addresses", async () => {
    const elsewhere = await startFixtureVendor();
    try {
      for (const link of [
        elsewhere.baseUrl,
        'https://api.bfl.ai.example.com/v1/get_result',
        'https://api.us1.bfl.ai/v1/get_result',
        'x',
        7,
      ]) {
        bench.answer(({ method }, response) => {
          if (method === 'POST') sendJson(response, 200, JSON.stringify({ id, polling_url: link }));
          return method === 'POST';
        });
        await assert.rejects(bench.make(), { code: 'outcome_unknown' }, String(link));
        assert.equal(bench.server.requests.length, 1);
      }
      assert.equal(elsewhere.connections(), 0);
    } finally {
      await elsewhere.close();
    }
  });
});
