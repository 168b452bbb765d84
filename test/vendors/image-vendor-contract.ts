import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { after, before, beforeEach, describe, it } from 'node:test';
import type { ImageJob } from '../../shared/capabilities/image.ts';
import { ApiError } from '../../shared/errors.ts';
import type { Offering, VendorCall } from '../../workers/vendors/vendor.ts';
import {
  callOf,
  collect,
  type FixtureVendor,
  type ReceivedRequest,
  sendJson,
  startFixtureVendor,
} from './fixture-vendor.ts';
import { memoryFiles } from './memory-files.ts';

export const png = Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), Buffer.from('the rest of an image')]);
export const apiKey = 'key-0123456789abcdef0123456789abcdef';

/** Answers one request of a vendor's wire; false leaves it to the next. */
export type Wire = (request: ReceivedRequest, response: ServerResponse) => boolean;

/** How one vendor makes an image: a creation, polls, and a file. */
export interface PolledImageVendor {
  readonly create: (baseUrl: string) => Offering<'image'>;
  readonly model: string;
  /** The answer of the creation. */
  readonly begun: (origin: string) => object;
  /** The state of a task that goes on, and of one that is done, with its image at `/file.png`. */
  readonly running: (origin: string) => object;
  readonly done: (origin: string) => object;
  /** The end of the path by which a state is asked for. */
  readonly statePath: RegExp;
  /** The result, where it is not in the state, and the end of its path. */
  readonly result?: { readonly path: RegExp; readonly body: (origin: string) => object };
}

/** The text of an image job. */
export function imageJob(parameters: object = {}, job: Partial<ImageJob> = {}): string {
  return JSON.stringify({
    takes_response_format: true,
    task: 'generation',
    response_format: null,
    images: [],
    mask: null,
    parameters: { prompt: 'A lighthouse', ...parameters },
    ...job,
  });
}

/** A vendor and its server, which answers as a test says and otherwise as its documentation does. */
export class ImageVendorBench {
  readonly server: FixtureVendor;
  readonly vendor: Offering<'image'>;
  private readonly wire: PolledImageVendor;

  private constructor(server: FixtureVendor, wire: PolledImageVendor) {
    this.server = server;
    this.wire = wire;
    this.vendor = wire.create(server.baseUrl);
  }

  static async start(wire: PolledImageVendor): Promise<ImageVendorBench> {
    return new ImageVendorBench(await startFixtureVendor(), wire);
  }

  get origin(): string {
    return new URL(this.server.baseUrl).origin;
  }

  get posts(): ReceivedRequest[] {
    return this.server.requests.filter(({ method }) => method === 'POST');
  }

  /** The JSON of the last creation. */
  get posted(): unknown {
    return JSON.parse(this.posts.at(-1)?.body ?? '');
  }

  /** From now on answers well, but for what `first` answers. */
  answer(first: Wire = () => false): void {
    this.server.requests.length = 0;
    const { begun, done, statePath, result } = this.wire;
    this.server.answer((response, request) => {
      if (first(request, response)) return;
      const path = new URL(request.url ?? '', this.origin).pathname;
      if (request.method === 'POST') sendJson(response, 200, JSON.stringify(begun(this.origin)));
      else if (path === '/file.png') response.writeHead(200, { 'content-type': 'image/png' }).end(png);
      else if (statePath.test(path)) sendJson(response, 200, JSON.stringify(done(this.origin)));
      else if (result?.path.test(path)) sendJson(response, 200, JSON.stringify(result.body(this.origin)));
      else sendJson(response, 404, '{}');
    });
  }

  /** Makes an image. */
  make(call: Partial<VendorCall> = {}) {
    const { model } = this.wire;
    const whole = callOf({ model, stream: false, request: imageJob(), files: memoryFiles().files, ...call });
    return this.vendor.image(whole, collect());
  }

  async close(): Promise<void> {
    await this.vendor.close();
    await this.server.close();
  }
}

const isState = ({ statePath }: PolledImageVendor, { method, url = '' }: ReceivedRequest): boolean =>
  method === 'GET' && statePath.test(new URL(url, 'http://host').pathname);

/** What every vendor must do that makes images as tasks, whatever it speaks on its own side. */
export function describePolledImageVendor(name: string, wire: PolledImageVendor): void {
  describe(`${name} keeps the contract of an image vendor`, () => {
    let bench: ImageVendorBench;
    before(async () => {
      bench = await ImageVendorBench.start(wire);
    });
    after(() => bench.close());
    beforeEach(() => bench.answer());

    const failure = async (call: Partial<VendorCall> = {}): Promise<ApiError> => {
      const error = await bench.make(call).then(
        () => assert.fail('an image was made'),
        (thrown: unknown) => thrown,
      );
      assert.ok(error instanceof ApiError, String(error));
      const said = JSON.stringify(error.toData()) + String(error.cause);
      assert.ok(!said.includes(apiKey) && !said.includes('lighthouse'), said);
      return error;
    };
    /** Lets the first `times` polls be answered by `answer`. */
    const firstPolls = (times: number, answer: (response: ServerResponse) => void): void => {
      let polls = 0;
      bench.answer((request, response) => {
        if (!isState(wire, request) || ++polls > times) return false;
        answer(response);
        return true;
      });
    };
    const createdOnce = (): void => assert.equal(bench.posts.length, 1);

    it("stores the vendor's image, and keeps its link to itself", async () => {
      const { files, saved } = memoryFiles();
      const { body, usage } = await bench.make({ files });
      const { created, data } = JSON.parse(body);
      assert.ok(Math.abs(created - Date.now() / 1000) < 5);
      assert.deepEqual(data, [{ file: 'file-1', type: 'image/png', bytes: png.length }]);
      assert.deepEqual(saved, [{ type: 'image/png', content: png }]);
      assert.equal(usage, null);
      assert.ok(!body.includes('127.0.0.1'));
      createdOnce();
    });

    it('answers base64 where that is asked for', async () => {
      const { body } = await bench.make({ request: imageJob({}, { response_format: 'b64_json' }) });
      assert.deepEqual(JSON.parse(body).data, [{ b64_json: png.toString('base64') }]);
    });

    it('asks as often as it takes', async () => {
      firstPolls(3, (response) => sendJson(response, 200, JSON.stringify(wire.running(bench.origin))));
      await bench.make();
      assert.ok(bench.server.requests.filter((request) => isState(wire, request)).length >= 4);
      createdOnce();
    });

    it('polls on where a poll fails, and never creates twice', async () => {
      for (const answer of [
        (response: ServerResponse) => sendJson(response, 500, '{}'),
        (response: ServerResponse) => sendJson(response, 529, '{}'),
        (response: ServerResponse) => sendJson(response, 429, '{}', { 'retry-after-ms': '10' }),
        (response: ServerResponse) => sendJson(response, 200, '{"sta'),
        (response: ServerResponse) => response.socket?.resetAndDestroy(),
      ]) {
        firstPolls(1, answer);
        await bench.make();
        createdOnce();
      }
    });

    it('does not know what became of an image whose task is gone, or cannot be asked after', async () => {
      firstPolls(100, (response) => sendJson(response, 404, '{}'));
      assert.equal((await failure()).code, 'outcome_unknown');
      assert.equal(bench.server.requests.length, 2);
      firstPolls(100, (response) => response.socket?.resetAndDestroy());
      assert.equal((await failure()).code, 'outcome_unknown');
      createdOnce();
    });

    it('does not know what became of a creation whose answer is lost', async () => {
      const posts: ((response: ServerResponse) => void)[] = [
        (response) => response.socket?.resetAndDestroy(),
        () => undefined,
        (response) => sendJson(response, 200, '{"id'),
        (response) => sendJson(response, 200, '{}'),
        (response) => response.writeHead(200, { 'content-length': '100' }).write('{') && response.socket?.end(),
      ];
      for (const answer of posts) {
        bench.answer(({ method }, response) => {
          if (method === 'POST') answer(response);
          return method === 'POST';
        });
        assert.equal((await failure({ silenceMs: 300 })).code, 'outcome_unknown', String(answer));
        createdOnce();
      }
    });

    it('says what the vendor refuses, and hides what concerns the operator alone', async () => {
      const echo = JSON.stringify({ detail: `your key ${apiKey} is wrong` });
      for (const [status, body, code] of [
        [400, '{"detail":"the prompt is too long"}', 'invalid_request_error'],
        [422, '{"detail":"the prompt is too long"}', 'invalid_request_error'],
        [401, echo, 'service_unavailable'],
        [402, echo, 'service_unavailable'],
        [403, echo, 'service_unavailable'],
        [404, echo, 'service_unavailable'],
        [429, echo, 'rate_limit_exceeded'],
        [500, echo, 'server_error'],
        [503, echo, 'service_unavailable'],
        [529, echo, 'service_unavailable'],
        [400, echo, 'invalid_request_error'],
      ] as const) {
        bench.answer((_request, response) => {
          sendJson(response, status, body, status === 429 ? { 'retry-after': '7' } : {});
          return true;
        });
        const error = await failure();
        assert.equal(error.code, code, String(status));
        if (status === 429) assert.equal(error.retryAfterMs, 7000);
        if (body !== echo) assert.equal(error.message, 'the prompt is too long');
        createdOnce();
      }
    });

    it('names the field of a fault in FastAPI’s shape', async () => {
      const detail = [{ loc: ['body', 'seed'], msg: 'it is no integer', type: 'int_parsing' }];
      bench.answer((_request, response) => {
        sendJson(response, 422, JSON.stringify({ detail }));
        return true;
      });
      const { message, param, vendorCode } = await failure();
      assert.deepEqual([message, param, vendorCode], ['it is no integer', 'seed', 'int_parsing']);
    });

    it('ends with its signal, before the creation, in it and between polls', async () => {
      assert.equal((await failure({ signal: AbortSignal.abort() })).code, 'cancelled');
      assert.equal(bench.posts.length, 0);
      const reason = new ApiError('timeout', 'The deadline has passed.');
      const inCreation = new AbortController();
      bench.answer(() => {
        inCreation.abort(reason);
        return true;
      });
      assert.equal(await failure({ signal: inCreation.signal }), reason);
      const between = new AbortController();
      firstPolls(100, (response) => {
        sendJson(response, 200, JSON.stringify(wire.running(bench.origin)));
        setImmediate(() => between.abort(reason));
      });
      assert.equal(await failure({ signal: between.signal }), reason);
      createdOnce();
    });

    it('refuses by name what the vendor does not have, before anything is sent', async () => {
      const upload = { file: 'a', name: 'a.png', type: 'image/png', bytes: 1 };
      for (const [request, param] of [
        [imageJob({ background: 'transparent' }), 'background'],
        [imageJob({ moderation: 'low' }), 'moderation'],
        [imageJob({ quality: 'hd' }), 'quality'],
        [imageJob({ style: 'natural' }), 'style'],
        [imageJob({ input_fidelity: 'high' }), 'input_fidelity'],
        [imageJob({ partial_images: 2 }), 'partial_images'],
        [imageJob({ size: 'huge' }), 'size'],
        [imageJob({}, { task: 'edit', images: [upload], mask: upload }), 'mask'],
        [imageJob({}, { task: 'variation', images: [upload] }), 'model'],
      ] as const) {
        const error = await failure({ request });
        assert.deepEqual([error.code, error.param], ['invalid_request_error', param]);
      }
      assert.equal((await failure({ stream: true })).param, 'stream');
      assert.equal(bench.server.requests.length, 0);
    });

    it("takes OpenAI's defaults, leaves the user out, and passes on the vendor's own fields", async () => {
      const defaults = {
        n: 1,
        size: 'auto',
        background: 'auto',
        moderation: 'auto',
        quality: 'auto',
        style: 'vivid',
        partial_images: 0,
      };
      await bench.make({ request: imageJob({ ...defaults, user: 'someone', seed: 7, nothing: null }) });
      const { input = bench.posted } = bench.posted as { input?: unknown };
      assert.deepEqual(input, { prompt: 'A lighthouse', seed: 7 });
    });

    it('does not follow a link to elsewhere on this machine', async () => {
      const elsewhere = await startFixtureVendor();
      try {
        const { origin } = new URL(elsewhere.baseUrl);
        bench.answer((request, response) => {
          const path = new URL(request.url ?? '', bench.origin).pathname;
          const isResult = wire.result?.path.test(path) && !wire.statePath.test(path);
          if (request.method === 'POST' || !(isResult || isState(wire, request))) return false;
          const body = isResult ? wire.result?.body(origin) : wire.done(origin);
          sendJson(response, 200, JSON.stringify(body));
          return true;
        });
        assert.equal((await failure()).code, 'server_error');
        assert.equal(elsewhere.connections(), 0);
      } finally {
        await elsewhere.close();
      }
    });
  });
}
