import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import RunwayML from '@runwayml/sdk';
import { createRunway } from '../../../workers/vendors/runway/runway.ts';
import { sendJson } from '../contracts/fixture-vendor.ts';
import {
  describePolledVideoVendor,
  type PolledVideoVendor,
  png,
  VideoVendorBench,
} from '../contracts/video-vendor-contract.ts';

// As documented on 2026-11-21: https://docs.dev.runwayml.com/api (creation, tasks), …/errors/errors and …/errors/task-failures,
// …/assets/inputs. The vendor's own client, @runwayml/sdk, is driven against them below.
const apiKey = 'key_0123456789abcdef0123456789abcdef';
const id = '17f20503-6c24-4c16-946b-35dbbce2af2f';
const task = (state: object): object => ({ id, createdAt: '2026-11-21T10:00:00.000Z', ...state });
const failed = (failureCode: string): object =>
  task({ status: 'FAILED', failure: 'Something about a lighthouse.', failureCode, cost: { credits: 0 } });
const wire: PolledVideoVendor = {
  create: (baseUrl) => createRunway({ name: 'runway', baseUrl, apiKey }),
  secrets: [apiKey],
  model: 'gen4.5',
  begun: { id, estimatedCost: { credits: 60 } },
  task: id,
  statePath: `/tasks/${id}`,
  running: task({ status: 'RUNNING', progress: 0.29, estimatedCost: { credits: 60 } }),
  done: (link) => task({ status: 'SUCCEEDED', output: [link], cost: { credits: 60 } }),
  refused: failed('SAFETY.INPUT.TEXT'),
  broken: failed('INTERNAL.BAD_OUTPUT.CODE01'),
  error: (_, error) => ({ error, docUrl: 'https://docs.dev.runwayml.com/api' }),
};

describePolledVideoVendor('runway', wire);

describe('videos of Runway', () => {
  const bench = new VideoVendorBench(wire);
  beforeEach(() => bench.answer());

  /** The vendor's own client, at its fixture. */
  const client = (): RunwayML => new RunwayML({ apiKey, baseURL: new URL(bench.server.baseUrl).origin, maxRetries: 0 });
  const asked = () =>
    bench.server.requests.map(({ method, url, body, headers }) => ({
      ...{ method, url, body: body && JSON.parse(body) },
      ...{ key: headers.authorization, version: headers['x-runway-version'] },
    }));

  it("Runway videos are requested like by Runway's own client, which reads the same answers", async () => {
    const { id: theirTask } = await client().textToVideo.create({
      model: 'gen4.5',
      promptText: 'A lighthouse',
      ratio: '1280:720',
      duration: 5,
      seed: 7,
    });
    assert.equal(theirTask, id);
    const made = await client().tasks.retrieve(id);
    assert.ok(made.status === 'SUCCEEDED', made.status);
    assert.equal(made.output[0], bench.filmLink);
    await client().tasks.delete(id);
    const theirs = asked();
    bench.answer();
    await bench.begin({ size: '1280x720', seconds: '5', parameters: { seed: 7 } });
    await bench.poll();
    await bench.vendor.video.discard?.(bench.taskCall());
    assert.deepEqual(asked(), theirs);
  });

  it("Runway videos with a first image are created at another path, like by Runway's own client", async () => {
    const promptImage = `data:image/png;base64,${png.toString('base64')}`;
    const upload = { file: 'one', name: 'x.png', type: 'image/png', bytes: png.length } as never;
    await client().imageToVideo.create({
      ...{ model: 'gen4_turbo', promptText: 'A lighthouse', ratio: '720:1280', duration: 10, promptImage },
    });
    const theirs = asked();
    bench.answer();
    await bench.begin({ size: '720x1280', seconds: '10', input: upload }, { model: 'gen4_turbo' });
    assert.deepEqual(asked(), theirs);
    await bench.begin({ input: { image_url: 'https://example.com/a.png' } }, { model: 'gen4_turbo' });
    assert.deepEqual(bench.posted, {
      model: 'gen4_turbo',
      promptText: 'A lighthouse',
      promptImage: 'https://example.com/a.png',
    });
  });

  it('Runway videos support only the output format mp4', async () => {
    const error = await bench.failure(bench.begin({ parameters: { outputFormat: 'prores' } }));
    assert.deepEqual([error.code, error.param], ['invalid_request_error', 'outputFormat']);
    assert.equal(bench.server.requests.length, 0);
    await bench.begin({ parameters: { outputFormat: 'mp4' } });
  });

  it('Runway videos report waiting, progress and the failure of their task', async () => {
    for (const status of ['PENDING', 'THROTTLED']) {
      bench.state(task({ status }));
      assert.deepEqual(await bench.poll(), { status: 'running', progress: 0 });
    }
    bench.state(wire.running);
    assert.deepEqual(await bench.poll(), { status: 'running', progress: 29 });
    for (const [state, code, param] of [
      [failed('INPUT_PREPROCESSING.SAFETY.THIRD_PARTY'), 'invalid_request_error', null],
      [failed('SAFETY.OUTPUT.VIDEO'), 'invalid_request_error', null],
      [failed('ASSET.INVALID'), 'invalid_request_error', 'input_reference'],
      [failed('INPUT_PREPROCESSING.INTERNAL'), 'server_error', null],
      [task({ status: 'FAILED', failure: 'Something.' }), 'server_error', null],
      [task({ status: 'CANCELLED' }), 'server_error', null],
      [task({ status: 'SUCCEEDED', output: [] }), 'server_error', null],
    ] as const) {
      bench.state(state);
      const polled = await bench.poll();
      assert.ok(polled.status === 'failed', JSON.stringify(state));
      assert.deepEqual([polled.error.code, polled.error.param], [code, param], JSON.stringify(state));
    }
    bench.state(task({ status: 'LATER' }));
    assert.equal((await bench.failure(bench.poll())).code, 'server_error');
  });

  it('Runway validation errors name the field of the request', async () => {
    const issues = [{ code: 'invalid_value', path: ['ratio'], message: 'Invalid option' }];
    const body = JSON.stringify({
      error: 'Validation of body failed',
      issues,
      docUrl: 'https://docs.dev.runwayml.com/api',
    });
    bench.answer((_, response) => {
      sendJson(response, 400, body);
      return true;
    });
    const error = await bench.failure(bench.begin());
    assert.deepEqual(
      [error.code, error.param, error.message],
      ['invalid_request_error', 'size', "Invalid 'size': Invalid option"],
    );
  });

  it('Runway videos are unavailable with 503 when the operator has no credits left', async () => {
    bench.answer((_, response) => {
      sendJson(response, 400, JSON.stringify({ error: 'You do not have enough credits to run this task.' }));
      return true;
    });
    const error = await bench.failure(bench.begin());
    assert.deepEqual([error.code, error.vendorStatus], ['service_unavailable', 402]);
  });
});
