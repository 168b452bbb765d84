import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { beforeEach, describe, it } from 'node:test';
import type { ImageJob } from '../../../shared/capabilities/image.ts';
import { ApiError } from '../../../shared/errors.ts';
import { readFailure } from '../../../workers/routing/failure.ts';
import type { Offering, VendorAnswer, VendorCall } from '../../../workers/vendors/vendor.ts';
import { failureOf } from './failure-of.ts';
import { callOf, collect, inText, sendJson } from './fixture-vendor.ts';
import { memoryFiles } from './memory-files.ts';
import { VendorBench } from './vendor-bench.ts';

export const png = Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), Buffer.from('the rest of an image')]);
export const apiKey = 'key-0123456789abcdef0123456789abcdef';

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

/** A vendor of images and its server, which answers as a test says and otherwise as its documentation does. */
export abstract class ImageBench extends VendorBench<Offering<'image'>> {
  private readonly model: string;

  constructor(create: (baseUrl: string) => Offering<'image'>, model: string) {
    super(create);
    this.model = model;
  }

  /** What the last creation asked for beside its model. */
  abstract get asked(): unknown;

  /** From now on answers well. */
  abstract answer(): void;

  /** From now on answers creations by this. */
  abstract answerCreation(answer: (response: ServerResponse) => void): void;

  /** Makes an image. */
  async make(call: Partial<VendorCall> = {}): Promise<VendorAnswer> {
    const { model } = this;
    const whole = callOf({ model, stream: false, request: imageJob(), files: memoryFiles().files, ...call });
    return inText(await this.vendor.image(whole, collect()));
  }

  /** The error of an image that is not made. */
  failure(call: Partial<VendorCall> = {}): Promise<ApiError> {
    return failureOf(this.make(call), [apiKey, 'lighthouse']);
  }

  assertCreatedOnce(): void {
    assert.equal(this.posts.length, 1);
  }
}

/** In what the vendors of images differ. */
export interface ImageWire {
  /** The body of an error. */
  readonly refusal: (status: number, message: string) => object;
  /** What has to be asked for `{prompt: 'A lighthouse', seed: 7}`. */
  readonly asked: object;
  /** Parameters that the vendor does not have, beside those that none has, and the parameter that is named. */
  readonly refused?: readonly (readonly [parameters: object, param: string])[];
  /** Parameters with OpenAI's defaults, beside those that no vendor takes for anything. */
  readonly defaults?: object;
}

const reason = 'the prompt is too long';
const echo = `your key ${apiKey} is wrong`;

/** What every vendor of images must do, whatever it speaks on its own side. */
export function describeImageVendor(name: string, open: () => ImageBench, wire: ImageWire): void {
  describe(`${name} keeps the contract of an image vendor`, () => {
    const bench = open();
    beforeEach(() => bench.answer());

    it(`${name} reports outcome_unknown without a retry when the answer to a creation is lost`, async () => {
      const answers: ((response: ServerResponse) => void)[] = [
        (response) => response.socket?.resetAndDestroy(),
        () => undefined,
        (response) => sendJson(response, 200, '{"id'),
        (response) => sendJson(response, 200, '[]'),
        (response) => response.writeHead(200, { 'content-length': '100' }).write('{') && response.socket?.end(),
      ];
      for (const answer of answers) {
        bench.answer();
        bench.answerCreation(answer);
        const error = await bench.failure({ silenceMs: 300 });
        assert.equal(error.code, 'outcome_unknown', String(answer));
        assert.equal(readFailure(error, true), undefined);
        bench.assertCreatedOnce();
      }
    });

    it(`${name} passes on why the vendor rejects an image, and hides the operator's affairs`, async () => {
      for (const [status, message, code, isTried] of [
        [400, reason, 'invalid_request_error', false],
        [413, reason, 'invalid_request_error', false],
        [422, reason, 'invalid_request_error', false],
        [401, echo, 'service_unavailable', true],
        [402, echo, 'service_unavailable', true],
        [403, echo, 'service_unavailable', true],
        [404, echo, 'service_unavailable', true],
        [429, echo, 'rate_limit_exceeded', true],
        // It may have begun before it failed.
        [500, echo, 'server_error', false],
        [503, echo, 'service_unavailable', true],
        [529, echo, 'service_unavailable', true],
        [400, echo, 'invalid_request_error', false],
      ] as const) {
        bench.answerCreation((response) => {
          const headers = status === 429 ? { 'retry-after': '7' } : {};
          sendJson(response, status, JSON.stringify(wire.refusal(status, message)), headers);
        });
        const error = await bench.failure();
        assert.equal(error.code, code, String(status));
        // Another key, or another vendor, may do better: nothing has been made.
        assert.equal(readFailure(error, false) !== undefined, isTried, String(status));
        if (status === 429) assert.equal(error.retryAfterMs, 7000);
        if (message === reason) assert.ok(error.message.includes(reason), error.message);
        bench.assertCreatedOnce();
      }
      for (const body of ['', '<html>', '[]', '{"errors":{},"name":[]}', '{"error":5}', '{"detail":5}']) {
        bench.answerCreation((response) => sendJson(response, 400, body));
        assert.equal((await bench.failure()).code, 'invalid_request_error', body);
      }
    });

    it(`${name} ends with its signal, before the creation and during it`, async () => {
      assert.equal((await bench.failure({ signal: AbortSignal.abort() })).code, 'cancelled');
      assert.equal(bench.server.requests.length, 0);
      const deadline = new ApiError('timeout', 'The deadline has passed.');
      const inCreation = new AbortController();
      bench.answerCreation(() => inCreation.abort(deadline));
      assert.equal(await bench.failure({ signal: inCreation.signal }), deadline);
    });

    it(`${name} rejects unsupported image parameters by name, before anything is sent`, async () => {
      const upload = { file: 'a', name: 'a.png', type: 'image/png', bytes: 1 } as never;
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
        ...(wire.refused ?? []).map(([parameters, param]) => [imageJob(parameters), param] as const),
      ] as const) {
        const error = await bench.failure({ request });
        assert.deepEqual([error.code, error.param], ['invalid_request_error', param]);
      }
      assert.equal((await bench.failure({ stream: true })).param, 'stream');
      assert.equal(bench.server.requests.length, 0);
    });

    it(`${name} accepts OpenAI's image defaults, omits the user, and passes on the vendor's own fields`, async () => {
      const defaults = {
        ...{ n: 1, size: 'auto', background: 'auto', moderation: 'auto', quality: 'auto', style: 'vivid' },
        ...{ partial_images: 0, input_fidelity: 'low', ...wire.defaults },
      };
      await bench.make({ request: imageJob({ ...defaults, user: 'someone', seed: 7, nothing: null }) });
      assert.deepEqual(bench.asked, wire.asked);
    });
  });
}
