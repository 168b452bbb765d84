import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { beforeEach, describe, it } from 'node:test';
import type { VideoJob } from '../../../shared/capabilities/video.ts';
import { ApiError, type ErrorCode } from '../../../shared/errors.ts';
import { createFilmDownloader } from '../../../workers/vendors/support/video-request.ts';
import type { Offering, TaskCall, TaskState, VendorCall } from '../../../workers/vendors/vendor.ts';
import { assertHarmless, failureOf } from './failure-of.ts';
import { callOf, sendJson, startFixtureVendor } from './fixture-vendor.ts';
import { memoryFiles, type SavedFile } from './memory-files.ts';
import { VendorBench, type Wire } from './vendor-bench.ts';

/** What the made videos hold. */
const film = Buffer.concat([Buffer.from('000000186674797069736f6d', 'hex'), Buffer.from('the rest of a film')]);
const drawing = '<svg xmlns="http://www.w3.org/2000/svg"/>';
export const png = Buffer.from('89504e470d0a1a0a', 'hex');

/** How one vendor makes a video: a creation, polls, and a film at `/film.mp4`. */
export interface PolledVideoVendor {
  readonly create: (baseUrl: string) => Offering<'video'>;
  /** What no error may carry. */
  readonly secrets: readonly string[];
  readonly model: string;
  /** The answer of the creation, and the name that the task has from then on. */
  readonly begun: object;
  readonly task: string;
  /** The path by which the task is asked after. */
  readonly statePath: string;
  readonly running: object;
  /** The state of a task whose film is there. */
  readonly done: (link: string) => object;
  /** States of tasks that have failed: by the vendor's rules, and by its own fault, which says `lighthouse`. */
  readonly refused: object;
  readonly broken: object;
  /** Says an error; its text holds the secrets. */
  readonly error: (status: number, message: string) => object;
  /** How a task is discarded, where it is not by a DELETE of the path above. */
  readonly discarded?: readonly [method: string, path: string];
  /** What a 404 to a creation is, where it is not that the model is not available. */
  readonly missingModel?: ErrorCode;
}

/** A vendor and its server, which answers as a test says and otherwise as its documentation does. */
export class VideoVendorBench extends VendorBench<Offering<'video'>> {
  private readonly wire: PolledVideoVendor;

  constructor(wire: PolledVideoVendor) {
    super(wire.create);
    this.wire = wire;
  }

  get filmLink(): string {
    return `${this.origin}/film.mp4`;
  }

  /** From now on answers well, but for what `first` answers. */
  answer(first: Wire = () => false): void {
    this.server.requests.length = 0;
    const { begun, done, statePath } = this.wire;
    this.server.answer((response, request) => {
      if (first(request, response)) return;
      const { method, url } = request;
      if (method === 'POST') sendJson(response, 200, JSON.stringify(begun));
      else if (url === '/film.mp4') this.sendFilm(response);
      else if (url !== `/v1${statePath}`) sendJson(response, 404, '{}');
      else if (method === 'DELETE') response.writeHead(204).end();
      else sendJson(response, 200, JSON.stringify(done(this.filmLink)));
    });
  }

  /** Answers every poll by this. */
  answerPolls(answer: (response: ServerResponse) => void): void {
    this.answer(({ url }, response) => {
      if (url !== `/v1${this.wire.statePath}`) return false;
      answer(response);
      return true;
    });
  }

  /** Answers every poll by this state. */
  state(state: object): void {
    this.answerPolls((response) => sendJson(response, 200, JSON.stringify(state)));
  }

  begin(job: Partial<VideoJob> = {}, call: Partial<VendorCall> = {}): Promise<string> {
    const whole: VideoJob = { prompt: 'A lighthouse', input: null, remixed: null, parameters: {}, ...job };
    const { files } = memoryFiles({ one: png });
    return this.vendor.video.create(callOf({ model: this.wire.model, request: JSON.stringify(whole), files, ...call }));
  }

  poll(more: Partial<TaskCall> = {}): Promise<TaskState> {
    return this.vendor.video.poll(this.taskCall(more));
  }

  taskCall(more: Partial<TaskCall> = {}): TaskCall {
    return { ...callOf({ model: this.wire.model }), task: this.wire.task, ...more };
  }

  /** The error of what must fail; nothing in it is what only the operator may know. */
  failure(promise: Promise<unknown>): Promise<ApiError> {
    return failureOf(promise, [...this.wire.secrets, 'lighthouse']);
  }

  checkHarmless(error: ApiError): void {
    assertHarmless(error, [...this.wire.secrets, 'lighthouse']);
  }

  private sendFilm(response: ServerResponse): void {
    response.writeHead(200, { 'content-type': 'video/mp4', 'content-length': film.length }).end(film);
  }
}

/** What every vendor must do that makes videos as tasks, whatever it speaks on its own side. */
export function describePolledVideoVendor(name: string, wire: PolledVideoVendor): void {
  describe(`${name} keeps the contract of a video vendor`, () => {
    const bench = new VideoVendorBench(wire);
    beforeEach(() => bench.answer());

    describeCreation(bench, wire);
    describePolling(bench, wire);
    describeFilms(bench, wire);
  });
}

function describeCreation(bench: VideoVendorBench, wire: PolledVideoVendor): void {
  it(`a ${wire.model} video is created once, and named by its task`, async () => {
    assert.equal(await bench.begin({ size: '1280x720', seconds: '5', parameters: { user: 'someone' } }), wire.task);
    assert.deepEqual(
      bench.server.requests.map(({ method }) => method),
      ['POST'],
    );
    assert.ok(!bench.server.requests[0]?.body.includes('someone'));
  });

  it(`a ${wire.model} video with unsupported fields is rejected by name, before anything is sent`, async () => {
    for (const [param, job] of [
      ['video_id', { remixed: { vendor: 'another', task: 'x' } }],
      ['size', { size: 'large' }],
    ] as const) {
      const error = await bench.failure(bench.begin(job));
      assert.deepEqual([error.code, error.param], ['invalid_request_error', param]);
    }
    const signal = AbortSignal.abort(new ApiError('cancelled', 'It was cancelled.'));
    assert.equal((await bench.failure(bench.begin({}, { signal }))).code, 'cancelled');
    assert.equal(bench.server.requests.length, 0);
  });

  it(`a ${wire.model} video is not created again when the answer is lost or unusable`, async () => {
    for (const lose of [
      (response: ServerResponse) => response.socket?.resetAndDestroy(),
      (response: ServerResponse) => sendJson(response, 200, '{"id":'),
      (response: ServerResponse) => sendJson(response, 200, '[]'),
      (response: ServerResponse) => sendJson(response, 200, '{}'),
      (response: ServerResponse) => sendJson(response, 200, JSON.stringify(withTaskName(wire.begun, wire.task))),
      (response: ServerResponse) => {
        response.writeHead(200, { 'content-type': 'application/json', 'content-length': '500' });
        response.write('{"id":', () => bench.server.reset());
      },
    ]) {
      bench.answer((_, response) => {
        lose(response);
        return true;
      });
      const error = await bench.failure(bench.begin());
      assert.deepEqual([error.code, error.vendorStatus], ['outcome_unknown', undefined]);
      assert.equal(bench.server.requests.length, 1);
    }
    bench.answer(() => true);
    assert.equal((await bench.failure(bench.begin({}, { silenceMs: 100 }))).code, 'outcome_unknown');
    bench.server.reset();
  });

  it(`a ${wire.model} video maps each status to the matching code`, async () => {
    for (const [status, code, polled = code] of [
      [400, 'invalid_request_error'],
      [401, 'service_unavailable'],
      [403, 'service_unavailable'],
      [404, wire.missingModel ?? 'service_unavailable', 'not_found'],
      [429, 'rate_limit_exceeded'],
      [500, 'server_error'],
      [503, 'service_unavailable'],
      [529, 'service_unavailable'],
    ] as const) {
      const body = JSON.stringify(wire.error(status, `No good: ${wire.secrets.join(' ')}`));
      bench.answer((_, response) => {
        sendJson(response, status, body, { 'retry-after': '9' });
        return true;
      });
      const error = await bench.failure(bench.begin());
      assert.deepEqual([error.code, error.vendorStatus], [code, status]);
      if (status === 429) assert.equal(error.retryAfterMs, 9000);
      assert.equal((await bench.failure(bench.poll())).code, polled, String(status));
    }
  });
}

/** The answer of a creation with a name that would lead to another path. */
function withTaskName(begun: object, task: string): object {
  const id = task.split('/').at(-1) ?? '';
  return JSON.parse(JSON.stringify(begun).replaceAll(id, '../../keys')) as object;
}

function describePolling(bench: VideoVendorBench, wire: PolledVideoVendor): void {
  it(`a ${wire.model} video reports the state of its task`, async () => {
    bench.state(wire.running);
    const running = await bench.poll();
    assert.equal(running.status, 'running');
    assert.deepEqual(
      bench.server.requests.map(({ method, url }) => [method, url]),
      [['GET', `/v1${wire.statePath}`]],
    );
    bench.answer();
    assert.equal((await bench.poll()).status, 'completed');
  });

  it(`a ${wire.model} video can be polled again after a failed poll`, async () => {
    for (const text of ['', '[]', '{"id":', '{}']) {
      bench.answerPolls((response) => sendJson(response, 200, text));
      assert.equal((await bench.failure(bench.poll())).code, 'server_error', text);
    }
    bench.answerPolls((response) => response.socket?.resetAndDestroy());
    assert.equal((await bench.failure(bench.poll())).code, 'server_error');
    bench.answerPolls(() => undefined);
    assert.equal((await bench.failure(bench.poll({ silenceMs: 100 }))).code, 'timeout');
    bench.server.reset();
    bench.answer();
    assert.equal((await bench.poll()).status, 'completed');
  });

  it(`a ${wire.model} video tells a policy rejection from a vendor fault, and hides internal details`, async () => {
    for (const [state, code, vendorCode] of [
      [wire.refused, 'invalid_request_error', 'content_policy_violation'],
      [wire.broken, 'server_error', undefined],
    ] as const) {
      bench.state(state);
      const polled = await bench.poll();
      assert.ok(polled.status === 'failed', JSON.stringify(state));
      bench.checkHarmless(polled.error);
      assert.deepEqual([polled.error.code, polled.error.vendorStatus], [code, undefined]);
      if (vendorCode !== undefined) assert.equal(polled.error.vendorCode, vendorCode);
    }
  });

  it(`a ${wire.model} video that nobody wants is discarded when the vendor supports it`, async () => {
    const { discard } = bench.vendor.video;
    if (discard === undefined) return;
    await discard(bench.taskCall());
    const [{ method, url } = assert.fail()] = bench.server.requests;
    const [verb, path] = wire.discarded ?? ['DELETE', wire.statePath];
    assert.deepEqual([method, url], [verb, `/v1${path}`]);
    bench.answer((_, response) => {
      sendJson(response, 404, '{}');
      return true;
    });
    assert.equal((await bench.failure(discard(bench.taskCall()))).code, 'not_found');
  });
}

function describeFilms(bench: VideoVendorBench, wire: PolledVideoVendor): void {
  const store = async (variant: 'video' | 'thumbnail' = 'video'): Promise<{ saved: SavedFile[]; stored: unknown }> => {
    const { files, saved } = memoryFiles();
    const stored = await bench.vendor.video.fetch(bench.taskCall({ files }), variant);
    return { saved, stored };
  };

  it(`a ${wire.model} video is stored, without sending the key to the host of its file`, async () => {
    const { saved, stored } = await store();
    assert.deepEqual(stored, { file: 'file-1', type: 'video/mp4', bytes: film.length });
    assert.deepEqual(saved, [{ type: 'video/mp4', content: film }]);
    const asked = bench.server.requests.at(-1);
    assert.deepEqual([asked?.url, asked?.headers.authorization], ['/film.mp4', undefined]);
    assert.deepEqual(await store('thumbnail'), { saved: [], stored: undefined });
  });

  it(`a ${wire.model} video is not downloaded from a private network`, async () => {
    const elsewhere = await startFixtureVendor();
    try {
      bench.state(wire.done(`${new URL(elsewhere.baseUrl).origin}/film.mp4`));
      assert.equal((await bench.failure(store())).code, 'server_error');
      assert.equal(elsewhere.connections(), 0);
    } finally {
      await elsewhere.close();
    }
  });

  it(`a ${wire.model} video is not stored when it is truncated, rejected by its host or too large`, async () => {
    for (const send of [
      (response: ServerResponse) => {
        response.writeHead(200, { 'content-type': 'video/mp4', 'content-length': 5000 });
        response.write(film, () => bench.server.reset());
      },
      (response: ServerResponse) => response.writeHead(403).end('<Error>expired</Error>'),
      (response: ServerResponse) => response.writeHead(200, { 'content-type': 'text/html' }).end('<h1>expired</h1>'),
      (response: ServerResponse) => response.writeHead(200, { 'content-type': 'application/xml' }).end('<Error/>'),
      (response: ServerResponse) => response.writeHead(200, { 'content-type': 'image/svg+xml' }).end(drawing),
      (response: ServerResponse) => response.writeHead(200, { 'content-type': 'video/mp4' }).end(drawing),
      (response: ServerResponse) => response.writeHead(200, { 'content-type': 'application/octet-stream' }).end(png),
      (response: ServerResponse) => response.writeHead(200, { 'content-type': 'video/mp4' }).end('{"error":"busy"}'),
    ]) {
      bench.answer(({ url }, response) => {
        if (url === '/film.mp4') send(response);
        return url === '/film.mp4';
      });
      const { files, saved } = memoryFiles();
      const fetched = bench.vendor.video.fetch(bench.taskCall({ files }), 'video');
      assert.equal((await bench.failure(fetched)).code, 'server_error');
      assert.deepEqual(saved, []);
    }
    bench.answer(({ url }, response) => {
      if (url === '/film.mp4') response.writeHead(200, { 'content-type': 'video/mp4' }).end();
      return url === '/film.mp4';
    });
    const empty = bench.vendor.video.fetch(bench.taskCall({ files: memoryFiles().files }), 'video');
    assert.equal((await bench.failure(empty)).code, 'server_error');
    bench.answer();
    const download = createFilmDownloader(bench.server.baseUrl, 10);
    assert.equal((await bench.failure(download(bench.filmLink, callOf()))).code, 'request_too_large');
  });
}
