import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { beforeEach, describe, it } from 'node:test';
import { ApiError } from '../../../shared/errors.ts';
import { type AnswerHolder, freeBytes } from '../../../workers/http/answer-memory.ts';
import { readFailure } from '../../../workers/routing/failure.ts';
import type { Offering } from '../../../workers/vendors/vendor.ts';
import { type ReceivedRequest, sendJson, startFixtureVendor } from './fixture-vendor.ts';
import { describeImageVendor, ImageBench, imageJob, png } from './image-vendor-contract.ts';
import { memoryFiles } from './memory-files.ts';
import type { Wire } from './vendor-bench.ts';

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
  /** How a task is discarded; left out: the vendor cannot be told. */
  readonly discarded?: readonly [method: string, path: RegExp];
}

/** A vendor of images that are polled for. */
export class PolledImageBench extends ImageBench {
  private readonly wire: PolledImageVendor;

  constructor(wire: PolledImageVendor) {
    super(wire.create, wire.model);
    this.wire = wire;
  }

  get asked(): unknown {
    const { model: _, ...posted } = this.posted as { model?: unknown; input?: unknown };
    return posted.input ?? posted;
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

  /** The discard of a task may be a POST, too. */
  override assertCreatedOnce(): void {
    const [, discard = /^$/] = this.wire.discarded ?? [];
    const created = this.posts.filter(({ url = '' }) => !discard.test(new URL(url, this.origin).pathname));
    assert.equal(created.length, 1);
  }

  answerCreation(answer: (response: ServerResponse) => void): void {
    this.answer(({ method }, response) => {
      if (method === 'POST') answer(response);
      return method === 'POST';
    });
  }
}

const isState = ({ statePath }: PolledImageVendor, { method, url = '' }: ReceivedRequest): boolean =>
  method === 'GET' && statePath.test(new URL(url, 'http://host').pathname);

/** What every vendor must do that makes images as tasks, whatever it speaks on its own side. */
export function describePolledImageVendor(name: string, wire: PolledImageVendor): void {
  describeImageVendor(name, () => new PolledImageBench(wire), {
    refusal: (_, detail) => ({ detail }),
    asked: { prompt: 'A lighthouse', seed: 7 },
  });

  describe(`${name} keeps the contract of a polled image vendor`, () => {
    const bench = new PolledImageBench(wire);
    beforeEach(() => bench.answer());

    /** Lets the first `times` polls be answered by `answer`. */
    const firstPolls = (times: number, answer: (response: ServerResponse) => void): void => {
      let polls = 0;
      bench.answer((request, response) => {
        if (!isState(wire, request) || ++polls > times) return false;
        answer(response);
        return true;
      });
    };

    it(`${name} stores the vendor's image, and keeps its link private`, async () => {
      const { files, saved } = memoryFiles();
      const { body, usage } = await bench.make({ files });
      const { created, data } = JSON.parse(body);
      assert.ok(Math.abs(created - Date.now() / 1000) < 5);
      assert.deepEqual(data, [{ file: 'file-1', type: 'image/png', bytes: png.length }]);
      assert.deepEqual(saved, [{ type: 'image/png', content: png }]);
      assert.equal(usage, null);
      assert.ok(!body.includes('127.0.0.1'));
      bench.assertCreatedOnce();
    });

    it(`${name} returns base64 when response_format is b64_json`, async () => {
      const { body } = await bench.make({ request: imageJob({}, { response_format: 'b64_json' }) });
      assert.deepEqual(JSON.parse(body).data, [{ b64_json: png.toString('base64') }]);
    });

    it(`${name} counts a long state or result as memory of its job`, async () => {
      const long = ' '.repeat(freeBytes);
      bench.answer((request, response) => {
        const path = new URL(request.url ?? '', bench.origin).pathname;
        const isResult = wire.result?.path.test(path) === true && !wire.statePath.test(path);
        if (request.method === 'POST' || !(isResult || isState(wire, request))) return false;
        const body = isResult ? wire.result?.body(bench.origin) : wire.done(bench.origin);
        // Of a result that comes by itself the state is short.
        sendJson(response, 200, JSON.stringify(body) + (isResult || wire.result === undefined ? long : ''));
        return true;
      });
      const holder: AnswerHolder = {};
      await bench.make({ holder });
      assert.equal(holder.holdsAnswer, true);
    });

    it(`${name} polls as often as it takes`, async () => {
      firstPolls(3, (response) => sendJson(response, 200, JSON.stringify(wire.running(bench.origin))));
      await bench.make();
      assert.ok(bench.server.requests.filter((request) => isState(wire, request)).length >= 4);
      bench.assertCreatedOnce();
    });

    it(`${name} continues polling after a failed poll, and never creates twice`, async () => {
      for (const answer of [
        (response: ServerResponse) => sendJson(response, 500, '{}'),
        (response: ServerResponse) => sendJson(response, 529, '{}'),
        (response: ServerResponse) => sendJson(response, 429, '{}', { 'retry-after-ms': '10' }),
        (response: ServerResponse) => sendJson(response, 200, '{"sta'),
        (response: ServerResponse) => response.socket?.resetAndDestroy(),
      ]) {
        firstPolls(1, answer);
        await bench.make();
        bench.assertCreatedOnce();
      }
    });

    it(`${name} reports outcome_unknown when the task is gone or cannot be polled`, async () => {
      firstPolls(100, (response) => sendJson(response, 404, '{}'));
      assert.equal((await bench.failure()).code, 'outcome_unknown');
      assert.equal(bench.server.requests.length, 2);
      firstPolls(100, (response) => response.socket?.resetAndDestroy());
      assert.equal((await bench.failure()).code, 'outcome_unknown');
      bench.assertCreatedOnce();
    });

    it(`${name} fails after the creation only with errors that cause no retry`, async () => {
      const isFile = ({ url }: ReceivedRequest): boolean => url === '/file.png';
      const isResult = (request: ReceivedRequest): boolean =>
        request.method === 'GET' && !isState(wire, request) && wire.result?.path.test(request.url ?? '') === true;
      const answers: ((response: ServerResponse) => void)[] = [
        ...[401, 404, 408, 429, 500, 503].map(
          (status) => (response: ServerResponse) => sendJson(response, status, '{}', { 'retry-after-ms': '10' }),
        ),
        (response) => response.socket?.resetAndDestroy(),
      ];
      for (const step of [isFile, ...(wire.result === undefined ? [] : [isResult])]) {
        for (const answer of answers) {
          let times = 0;
          bench.answer((request, response) => {
            if (!step(request)) return false;
            times += 1;
            answer(response);
            return true;
          });
          const error = await bench.failure();
          assert.ok(times > 0);
          assert.equal(readFailure(error, true), undefined, `${error.code} ${error.vendorStatus}`);
          bench.assertCreatedOnce();
        }
      }
    });

    it(`${name} reports outcome_unknown when the answer to a creation names no task`, async () => {
      bench.answerCreation((response) => sendJson(response, 200, '{}'));
      assert.equal((await bench.failure()).code, 'outcome_unknown');
      bench.assertCreatedOnce();
    });

    it(`${name} names the field of an error in FastAPI's shape`, async () => {
      const detail = [{ loc: ['body', 'seed'], msg: 'it is no integer', type: 'int_parsing' }];
      bench.answer((_request, response) => {
        sendJson(response, 422, JSON.stringify({ detail }));
        return true;
      });
      const { message, param, vendorCode } = await bench.failure();
      assert.deepEqual([message, param, vendorCode], ['it is no integer', 'seed', 'int_parsing']);
    });

    it(`${name} ends with its signal between polls`, async () => {
      const reason = new ApiError('timeout', 'The deadline has passed.');
      const between = new AbortController();
      firstPolls(100, (response) => {
        sendJson(response, 200, JSON.stringify(wire.running(bench.origin)));
        setImmediate(() => between.abort(reason));
      });
      assert.equal(await bench.failure({ signal: between.signal }), reason);
      bench.assertCreatedOnce();
    });

    it(`${name} discards a task whose job has ended, if its vendor can`, async () => {
      const [verb, path] = wire.discarded ?? ['', /^$/];
      const isDiscard = ({ method, url = '' }: ReceivedRequest): boolean =>
        method === verb && path.test(new URL(url, bench.origin).pathname);
      const between = new AbortController();
      const discarded = new Promise<void>((resolve) => {
        bench.answer((request, response) => {
          if (isDiscard(request)) {
            // A refusal changes nothing.
            sendJson(response, 400, '{"status":"ALREADY_COMPLETED"}');
            resolve();
            return true;
          }
          if (!isState(wire, request)) return false;
          sendJson(response, 200, JSON.stringify(wire.running(bench.origin)));
          setImmediate(() => between.abort());
          return true;
        });
      });
      assert.equal((await bench.failure({ signal: between.signal })).code, 'cancelled');
      if (wire.discarded !== undefined) await discarded;
    });

    it(`${name} does not follow a link into this machine's network`, async () => {
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
        assert.equal((await bench.failure()).code, 'server_error');
        assert.equal(elsewhere.connections(), 0);
      } finally {
        await elsewhere.close();
      }
    });
  });
}
