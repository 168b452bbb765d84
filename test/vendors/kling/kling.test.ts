import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { beforeEach, describe, it } from 'node:test';
import { createKling } from '../../../workers/vendors/kling/kling.ts';
import { KlingToken } from '../../../workers/vendors/kling/token.ts';
import { sendJson } from '../contracts/fixture-vendor.ts';
import {
  describePolledVideoVendor,
  type PolledVideoVendor,
  png,
  VideoVendorBench,
} from '../contracts/video-vendor-contract.ts';

// As documented on 2026-11-21: https://app.klingai.com/global/dev/document-api/apiReference/commonInfo (tokens, error codes),
// …/model/textToVideo and …/model/imageToVideo (creations, tasks). The vendor has no client for Node.
const accessKey = 'A0123456789abcdef0123456789abcde';
const secretKey = 'S0123456789abcdef0123456789abcde';
const id = '867283741759111202';
const answer = (data: object): object => ({ code: 0, message: 'SUCCEED', request_id: 'c0656403', data });
const task = (state: string, more: object = {}): object =>
  answer({
    ...{ task_id: id, task_status: state, task_info: {}, created_at: 1774805076166, updated_at: 1774805076166 },
    ...more,
  });
/** The code that comes with a status. */
const codes: Readonly<Record<number, number>> = {
  400: 1201,
  401: 1002,
  403: 1103,
  404: 1203,
  429: 1302,
  500: 5000,
  503: 5001,
};
const wire: PolledVideoVendor = {
  create: (baseUrl) => createKling({ name: 'kling', baseUrl, apiKey: `${accessKey}:${secretKey}` }),
  secrets: [accessKey, secretKey],
  model: 'kling-v2-6',
  begun: task('submitted'),
  task: `text2video/${id}`,
  statePath: `/videos/text2video/${id}`,
  running: task('processing'),
  done: (url) => task('succeed', { task_result: { videos: [{ id: 'v1', url, duration: '5.042' }] } }),
  refused: task('failed', { task_status_msg: 'Failure to pass the risk control system' }),
  broken: task('failed', { task_status_msg: 'Could not draw a lighthouse' }),
  error: (status, message) => ({ code: codes[status] ?? 9999, message, request_id: 'c0656403' }),
  missingModel: 'model_not_found',
};

describePolledVideoVendor('kling', wire);

describe('videos of Kling', () => {
  const bench = new VideoVendorBench(wire);
  beforeEach(() => bench.answer());

  it("Kling videos are requested in Kling's terms, with a token instead of the keys", async () => {
    await bench.begin({ size: '720x1280', seconds: '10', parameters: { negative_prompt: 'boats', sound: 'on' } });
    const [{ url, headers } = assert.fail()] = bench.server.requests;
    assert.equal(url, '/v1/videos/text2video');
    assert.deepEqual(bench.posted, {
      ...{ model_name: 'kling-v2-6', prompt: 'A lighthouse', mode: 'std', aspect_ratio: '9:16', duration: '10' },
      ...{ negative_prompt: 'boats', sound: 'on' },
    });
    await bench.poll();
    const [scheme, token = ''] = String(headers.authorization).split(' ');
    assert.equal(scheme, 'Bearer');
    assert.equal(bench.server.requests[1]?.headers.authorization, headers.authorization);
    const [head = '', claims = '', signature] = token.split('.');
    assert.equal(createHmac('sha256', secretKey).update(`${head}.${claims}`).digest('base64url'), signature);
    const read = (part: string) => JSON.parse(Buffer.from(part, 'base64url').toString());
    assert.deepEqual(read(head), { alg: 'HS256', typ: 'JWT' });
    const { iss, exp, nbf } = read(claims);
    assert.equal(iss, accessKey);
    const now = Date.now() / 1000;
    assert.ok(nbf < now && exp > now + 900 && exp <= now + 1800, JSON.stringify({ nbf, exp, now }));
  });

  it('Kling videos with a first image are created and polled at another path', async () => {
    const upload = { file: 'one', name: 'x.png', type: 'image/png', bytes: png.length } as never;
    const name = await bench.begin({ size: '1920x1080', input: upload });
    assert.equal(name, `image2video/${id}`);
    assert.equal(bench.server.requests[0]?.url, '/v1/videos/image2video');
    const image = png.toString('base64');
    assert.deepEqual(bench.posted, { model_name: 'kling-v2-6', prompt: 'A lighthouse', mode: 'pro', image });
    await bench.begin({ input: { image_url: 'https://example.com/a.png' } });
    assert.deepEqual(bench.posted, {
      ...{ model_name: 'kling-v2-6', prompt: 'A lighthouse', image: 'https://example.com/a.png' },
    });
    bench.answer(({ url }, response) => {
      sendJson(response, url === `/v1/videos/${name}` ? 200 : 404, JSON.stringify(wire.running));
      return true;
    });
    assert.deepEqual(await bench.poll({ task: name }), { status: 'running', progress: 0 });
  });

  it('Kling videos with an address that they would be sent to are refused, without a call', async () => {
    const parameters = { callback_url: 'https://example.com/mine' };
    const error = await bench.failure(bench.begin({ parameters }));
    assert.deepEqual([error.code, error.param], ['invalid_request_error', 'callback_url']);
    assert.equal(bench.server.requests.length, 0);
  });

  it('Kling videos have 720 or 1080 lines, and any other size is rejected', async () => {
    const error = await bench.failure(bench.begin({ size: '3840x2160' }));
    assert.deepEqual([error.code, error.param], ['invalid_request_error', 'size']);
    assert.equal(bench.server.requests.length, 0);
  });

  it('a Kling error has the meaning of its code, even when its status differs', async () => {
    for (const [status, code, expected, vendorStatus] of [
      [400, 1301, 'invalid_request_error', undefined],
      [429, 1102, 'service_unavailable', 402],
      [429, 1303, 'rate_limit_exceeded', 429],
      [429, 1304, 'service_unavailable', 403],
      [200, 1000, 'service_unavailable', 401],
      [200, 1303, 'rate_limit_exceeded', 429],
      // What it means is not known, nor that nothing has begun: it is not tried again.
      [200, 9999, 'service_unavailable', 200],
    ] as const) {
      bench.answer((_, response) => {
        sendJson(response, status, JSON.stringify({ code, message: 'No lighthouse.', request_id: 'x' }));
        return true;
      });
      const error = await bench.failure(bench.begin());
      assert.deepEqual([error.code, error.vendorStatus], [expected, vendorStatus], String(code));
      assert.equal(error.vendorCode, code === 1301 ? 'content_policy_violation' : null);
    }
  });

  it('a Kling video without a file fails with server_error', async () => {
    for (const more of [{}, { task_result: { videos: [] } }]) {
      bench.state(task('succeed', more));
      const polled = await bench.poll();
      assert.ok(polled.status === 'failed', JSON.stringify(more));
      assert.equal(polled.error.code, 'server_error');
    }
  });

  it('Kling requires both keys', () => {
    for (const apiKey of [accessKey, `${accessKey}:`, `:${secretKey}`, 'a:b:c']) {
      assert.throws(
        () => createKling({ name: 'kling', baseUrl: 'http://127.0.0.1:1/v1', apiKey }),
        (error: Error) => /ACCESS_KEY:SECRET_KEY/.test(error.message) && !error.message.includes(apiKey),
      );
    }
  });
});

describe('KlingToken', () => {
  it('KlingToken renews the token before it expires', () => {
    const token = new KlingToken(accessKey, secretKey);
    const now = Date.UTC(2026, 10, 21);
    const first = token.get(now);
    assert.equal(token.get(now + 899_000), first);
    const second = token.get(now + 900_000);
    assert.notEqual(second, first);
    assert.equal(token.get(now + 901_000), second);
  });
});
