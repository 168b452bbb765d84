import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { ServerResponse } from 'node:http';
import { after, before, beforeEach, describe, it } from 'node:test';
import type { VideoJob } from '../../../shared/capabilities/video.ts';
import { ApiError } from '../../../shared/errors.ts';
import { createDownloader } from '../../../workers/http/download.ts';
import { createGemini } from '../../../workers/vendors/gemini/gemini.ts';
import { createFilmDownloader } from '../../../workers/vendors/support/video-request.ts';
import type { Offering, TaskCall } from '../../../workers/vendors/vendor.ts';
import { callOf, type FixtureVendor, sendJson, startFixtureVendor } from '../contracts/fixture-vendor.ts';
import { memoryFiles } from '../contracts/memory-files.ts';

// As documented on 2026-11-21: https://ai.google.dev/gemini-api/docs/video (creation, polling, download with redirects), the
// converters of @google/genai 2.32.0 (fields on the wire), and https://google.aip.dev/151 (operations that failed).
const apiKey = 'AIzaSyTest0123456789abcdefghijklmnopqrs';
const model = 'veo-3.1-generate-preview';
const task = `models/${model}/operations/mvn5x3hy8wq2`;
const film = Buffer.concat([Buffer.from('000000186674797069736f6d', 'hex'), Buffer.from('the rest of a film')]);
const filmPath = '/v1/files/3qx5k7:download?alt=media';
const png = Buffer.from('89504e470d0a1a0a', 'hex');

describe('videos of Gemini', () => {
  let server: FixtureVendor;
  let vendor: Offering<'video'>;
  before(async () => {
    server = await startFixtureVendor();
    vendor = createGemini({ name: 'gemini', baseUrl: server.baseUrl, apiKey });
  });
  after(async () => {
    await vendor.close();
    await server.close();
  });
  beforeEach(() => {
    server.requests.length = 0;
  });

  const origin = (): string => new URL(server.baseUrl).origin;
  const made = (uri = `${origin()}${filmPath}`): object => ({
    done: true,
    response: {
      '@type': 'type.googleapis.com/google.ai.generativelanguage.v1beta.PredictLongRunningResponse',
      generateVideoResponse: { generatedSamples: [{ video: { uri } }] },
    },
  });
  const sendFilm = (response: ServerResponse): void => {
    response.writeHead(200, { 'content-type': 'video/mp4', 'content-length': film.length }).end(film);
  };
  /** A server whose operation is in this state. */
  const answer = (state: object, onFile = sendFilm): void =>
    server.answer((response, { url = '' }) => {
      if (url.includes('/files/')) onFile(response);
      else sendJson(response, 200, JSON.stringify({ name: task, ...state }));
    });
  const create = (fields: Partial<VideoJob> = {}): Promise<string> => {
    const job: VideoJob = { prompt: 'Waves', input: null, remixed: null, parameters: {}, ...fields };
    return vendor.video.create(callOf({ model, request: JSON.stringify(job), files: memoryFiles({ one: png }).files }));
  };
  const taskCall = (more: Partial<TaskCall> = {}): TaskCall => ({ ...callOf({ model }), task, ...more });
  const failure = async (promise: Promise<unknown>): Promise<ApiError> => {
    const thrown = await promise.then(
      () => assert.fail('it succeeded'),
      (error: unknown) => error,
    );
    assert.ok(thrown instanceof ApiError, String(thrown));
    assert.ok(!JSON.stringify(thrown.toData()).includes(apiKey) && !String(thrown.cause).includes(apiKey));
    return thrown;
  };

  it('Gemini videos are created as long-running operations, with the key in a header', async () => {
    answer({});
    const parameters = { user: 'someone', negativePrompt: 'boats' };
    assert.equal(await create({ size: '1280x720', seconds: '8', parameters }), task);
    const [{ method, url, headers, body } = assert.fail()] = server.requests;
    assert.deepEqual([method, url], ['POST', `/v1/models/${model}:predictLongRunning`]);
    assert.equal(headers['x-goog-api-key'], apiKey);
    assert.deepEqual(JSON.parse(body), {
      instances: [{ prompt: 'Waves' }],
      parameters: { negativePrompt: 'boats', aspectRatio: '16:9', resolution: '720p', durationSeconds: 8 },
    });
  });

  it('Gemini videos start with an upload or a data URL, in base64', async () => {
    answer({});
    const upload = { file: 'one', name: 'x.png', type: 'image/png', bytes: png.length } as never;
    // A PNG, whatever it says.
    const dataUrl = `data:image/jpeg;base64,${png.toString('base64')}`;
    for (const [input, mimeType] of [
      [upload, 'image/png'],
      [{ image_url: dataUrl }, 'image/png'],
    ] as const) {
      await create({ size: '1080x1920', input });
      assert.deepEqual(JSON.parse(server.requests.at(-1)?.body ?? ''), {
        instances: [{ prompt: 'Waves', image: { bytesBase64Encoded: png.toString('base64'), mimeType } }],
        parameters: { aspectRatio: '9:16', resolution: '1080p' },
      });
    }
  });

  it('Gemini rejects unsupported video fields by name, without a call', async () => {
    answer({});
    for (const [param, fields] of [
      ['video_id', { remixed: { vendor: 'gemini', task } }],
      ['sampleCount', { parameters: { sampleCount: 2 } }],
      ['size', { size: 'large' }],
      ['input_reference', { input: { image_url: 'http://127.0.0.1/private.png' } }],
      ['input_reference', { input: { image_url: 'data:text/plain,x' } }],
    ] as const) {
      const error = await failure(create(fields));
      assert.deepEqual([error.code, error.param], ['invalid_request_error', param]);
    }
    assert.equal(server.requests.length, 0);
  });

  it('a Gemini video is not created again when the answer is lost or unusable', async () => {
    for (const lose of [
      (response: ServerResponse) => response.socket?.resetAndDestroy(),
      (response: ServerResponse) => sendJson(response, 200, '{"name":'),
      (response: ServerResponse) => sendJson(response, 200, '{}'),
      (response: ServerResponse) => sendJson(response, 200, '{"name":"models/x/operations/../../../v1/files"}'),
      (response: ServerResponse) => sendJson(response, 200, '{"name":"https://example.com/operations/x"}'),
      (response: ServerResponse) => {
        response.writeHead(200, { 'content-type': 'application/json', 'content-length': '500' });
        response.write('{"name":', () => server.reset());
      },
    ]) {
      server.requests.length = 0;
      server.answer(lose);
      assert.equal((await failure(create())).code, 'outcome_unknown');
      assert.equal(server.requests.length, 1);
    }
    server.answer(() => undefined);
    const job = { prompt: 'Waves', input: null, remixed: null, parameters: {} };
    const silent = vendor.video.create(callOf({ model, request: JSON.stringify(job), silenceMs: 100 }));
    assert.equal((await failure(silent)).code, 'outcome_unknown');
    server.reset();
  });

  it('Gemini videos map each status to the matching code', async () => {
    for (const [status, name, code, polled = code] of [
      [400, 'INVALID_ARGUMENT', 'invalid_request_error'],
      [401, 'UNAUTHENTICATED', 'service_unavailable'],
      [403, 'PERMISSION_DENIED', 'service_unavailable'],
      [404, 'NOT_FOUND', 'model_not_found', 'not_found'],
      [429, 'RESOURCE_EXHAUSTED', 'rate_limit_exceeded'],
      [500, 'INTERNAL', 'server_error'],
      [503, 'UNAVAILABLE', 'service_unavailable'],
      [529, 'UNAVAILABLE', 'service_unavailable'],
    ] as const) {
      const body = JSON.stringify({ error: { code: status, message: `No good: ${apiKey}`, status: name } });
      server.answer((response) => sendJson(response, status, body, { 'retry-after': '9' }));
      const error = await failure(create());
      assert.equal(error.code, code, name);
      if (status === 429) assert.equal(error.retryAfterMs, 9000);
      assert.equal((await failure(vendor.video.poll(taskCall()))).code, polled, name);
    }
  });

  it('Gemini videos are polled by the name of their operation until it is done', async () => {
    answer({});
    assert.deepEqual(await vendor.video.poll(taskCall()), { status: 'running', progress: 0 });
    answer({ done: false, metadata: {} });
    assert.deepEqual(await vendor.video.poll(taskCall()), { status: 'running', progress: 0 });
    answer(made());
    assert.deepEqual(await vendor.video.poll(taskCall()), { status: 'completed' });
    const [{ method, url, headers } = assert.fail()] = server.requests;
    assert.deepEqual([method, url, headers['x-goog-api-key']], ['GET', `/v1/${task}`, apiKey]);
    for (const text of ['', '[]', '{"done":']) {
      server.answer((response) => sendJson(response, 200, text));
      assert.equal((await failure(vendor.video.poll(taskCall()))).code, 'server_error');
    }
    server.answer((response) => response.socket?.resetAndDestroy());
    assert.equal((await failure(vendor.video.poll(taskCall()))).code, 'server_error');
    server.answer(() => undefined);
    assert.equal((await failure(vendor.video.poll(taskCall({ silenceMs: 100 })))).code, 'timeout');
    server.reset();
  });

  it('a Gemini video fails with the error of its operation', async () => {
    const filtered = (samples: object) => ({ done: true, response: { generateVideoResponse: samples } });
    const reason = 'Veo could not generate the video, because its prompt goes against the usage guidelines.';
    for (const [state, code, vendorCode, message] of [
      [{ done: true, error: { code: 3, message: 'The picture is too small.' } }, 'invalid_request_error', null],
      [{ done: true, error: { code: 13, message: 'Oh.' } }, 'server_error', null],
      [{ done: true, error: { code: 8, message: 'Oh.' } }, 'rate_limit_exceeded', null],
      [{ done: true, error: { code: 14, message: 'Oh.' } }, 'service_unavailable', null],
      [
        filtered({ raiMediaFilteredCount: 1, raiMediaFilteredReasons: [reason] }),
        'invalid_request_error',
        'content_policy_violation',
        reason,
      ],
      [filtered({ raiMediaFilteredCount: 1 }), 'invalid_request_error', 'content_policy_violation'],
      [filtered({ generatedSamples: [] }), 'server_error', null],
      [{ done: true }, 'server_error', null],
    ] as const) {
      answer(state);
      const polled = await vendor.video.poll(taskCall());
      assert.ok(polled.status === 'failed', JSON.stringify(state));
      assert.deepEqual([polled.error.code, polled.error.vendorCode], [code, vendorCode], JSON.stringify(state));
      if (message !== undefined) assert.equal(polled.error.message, message);
    }
  });

  it("Gemini videos are downloaded from the operation's link with the key, also behind the vendor's own redirect", async () => {
    answer(made(), (response) => {
      if (server.requests.at(-1)?.url !== filmPath) return sendFilm(response);
      response.writeHead(302, { location: `/download${filmPath}` }).end();
    });
    const { files, saved } = memoryFiles();
    const stored = await vendor.video.fetch(taskCall({ files }), 'video');
    assert.deepEqual(stored, { file: 'file-1', type: 'video/mp4', bytes: film.length });
    assert.deepEqual(saved, [{ type: 'video/mp4', content: film }]);
    assert.deepEqual(
      server.requests.map(({ url, headers }) => [url, headers['x-goog-api-key']]),
      [
        [`/v1/${task}`, apiKey],
        [filmPath, apiKey],
        [`/download${filmPath}`, apiKey],
      ],
    );
    assert.equal(await vendor.video.fetch(taskCall({ files }), 'thumbnail'), undefined);
  });

  it('Gemini videos send the key to no other origin, and reach into no private network', async () => {
    const elsewhere = await startFixtureVendor();
    const target = `${new URL(elsewhere.baseUrl).origin}/film.mp4`;
    try {
      answer(made(target));
      assert.equal((await failure(vendor.video.fetch(taskCall(), 'video'))).code, 'server_error');
      answer(made(), (response) => response.writeHead(302, { location: target }).end());
      assert.equal((await failure(vendor.video.fetch(taskCall(), 'video'))).code, 'server_error');
      assert.equal(elsewhere.connections(), 0);
    } finally {
      await elsewhere.close();
    }
  });

  it('the downloader sends the key to a trusted origin and not to its redirect target', async () => {
    const sent: [origin: unknown, headers: string][] = [];
    const onRequest = (message: unknown): void => {
      const { request } = message as { request: { origin: unknown; headers: unknown } };
      sent.push([request.origin, JSON.stringify(request.headers)]);
    };
    const download = createDownloader({
      trustedOrigin: origin(),
      trustedHeaders: { 'x-goog-api-key': apiKey },
      // Nothing is connected to: a request is announced before that.
      resolveHost: (_, callback) => callback(new Error('unknown host'), []),
    });
    answer({}, (response) => response.writeHead(302, { location: 'https://films.example.com/film.mp4' }).end());
    subscribe('undici:request:create', onRequest);
    try {
      await failure(download(`${origin()}${filmPath}`, callOf()));
    } finally {
      unsubscribe('undici:request:create', onRequest);
    }
    assert.deepEqual(
      sent.map(([place, headers]) => [place, headers.includes(apiKey)]),
      [
        [origin(), true],
        ['https://films.example.com', false],
      ],
    );
  });

  it('Gemini videos are not stored when truncated, and given up when too large', async () => {
    const cut = (response: ServerResponse): void => {
      response.writeHead(200, { 'content-type': 'video/mp4', 'content-length': 5000 });
      response.write(film, () => server.reset());
    };
    answer(made(), cut);
    const { files, saved } = memoryFiles();
    assert.equal((await failure(vendor.video.fetch(taskCall({ files }), 'video'))).code, 'server_error');
    assert.deepEqual(saved, []);
    answer(made());
    const download = createFilmDownloader(server.baseUrl, 10);
    assert.equal((await failure(download(`${origin()}${filmPath}`, callOf()))).code, 'request_too_large');
  });
});
