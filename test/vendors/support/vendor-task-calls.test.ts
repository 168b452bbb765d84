import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ApiError } from '../../../shared/errors.ts';
import { createHttpClient, type HttpClient } from '../../../workers/http/http-client.ts';
import { readFailure } from '../../../workers/routing/failure.ts';
import { afterBegin, beginTask } from '../../../workers/vendors/support/vendor-task-calls.ts';
import { type FixtureVendor, sendJson, startFixtureVendor } from '../contracts/fixture-vendor.ts';

const limits = { signal: new AbortController().signal, silenceMs: 300 };

/** Does something with a vendor, and ends both. */
async function withVendor(use: (http: HttpClient, server: FixtureVendor) => Promise<void>): Promise<void> {
  const server = await startFixtureVendor();
  const http = createHttpClient({ vendor: 'painter', baseUrl: server.baseUrl, headers: {}, secret: 'k'.repeat(20) });
  try {
    await use(http, server);
  } finally {
    await http.close();
    await server.close();
  }
}

async function errorOf(work: Promise<unknown>): Promise<ApiError> {
  const thrown = await work.then(
    () => assert.fail('no error'),
    (error: unknown) => error,
  );
  assert.ok(thrown instanceof ApiError, String(thrown));
  return thrown;
}

describe('afterBegin', () => {
  it('afterBegin causes no retry of the creation, and keeps only errors that tell the outcome', () =>
    withVendor(async (http, server) => {
      const fetchResult = () => http.get({ path: '/result', ...limits });
      for (const [status, code] of [
        [400, 'invalid_request_error'],
        [401, 'outcome_unknown'],
        [402, 'outcome_unknown'],
        [404, 'outcome_unknown'],
        [408, 'timeout'],
        [422, 'invalid_request_error'],
        [429, 'outcome_unknown'],
        [500, 'server_error'],
        [503, 'outcome_unknown'],
        [504, 'timeout'],
        [529, 'outcome_unknown'],
      ] as const) {
        const body = { error: { message: 'no', param: 'seed', code: 'odd' } };
        server.answer((response) => sendJson(response, status, JSON.stringify(body)));
        const direct = await errorOf(fetchResult());
        assert.equal(direct.vendorStatus, status);
        const error = await errorOf(afterBegin(fetchResult));
        assert.deepEqual([error.code, error.vendorStatus], [code, undefined], String(status));
        assert.equal(readFailure(error, true), undefined);
        if (code !== 'outcome_unknown') assert.deepEqual(error.toData(), { ...direct.toData() });
      }
    }));

  it('afterBegin reports outcome_unknown when the vendor resets, falls silent or cannot be reached', () =>
    withVendor(async (http, server) => {
      for (const answer of [() => server.reset(), () => undefined]) {
        server.answer(answer);
        const error = await errorOf(afterBegin(() => http.get({ path: '/result', ...limits })));
        assert.deepEqual([error.code, readFailure(error, true)], ['outcome_unknown', undefined]);
      }
      const nobody = createHttpClient({ vendor: 'nobody', baseUrl: 'http://127.0.0.1:1', headers: {}, secret: '' });
      const fetchResult = () => nobody.get({ path: '/result', ...limits });
      assert.equal(readFailure(await errorOf(fetchResult()), true)?.reason, 'connection');
      const error = await errorOf(afterBegin(fetchResult));
      assert.deepEqual([error.code, readFailure(error, true)], ['outcome_unknown', undefined]);
      await nobody.close();
    }));

  it('afterBegin reports outcome_unknown when the vendor no longer knows the task', () =>
    withVendor(async (http, server) => {
      server.answer((response) => sendJson(response, 404, '{}'));
      const error = await errorOf(afterBegin(() => http.get({ path: '/result', notFound: 'It is gone.', ...limits })));
      assert.equal(error.code, 'outcome_unknown');
    }));

  it('afterBegin keeps the result, and errors that do not come from the vendor', async () => {
    assert.equal(await afterBegin(async () => 5), 5);
    const own = new ApiError('service_unavailable', 'This worker stops.');
    assert.equal(await errorOf(afterBegin(() => Promise.reject(own))), own);
    const bug = await errorOf(afterBegin(() => Promise.reject(new TypeError('a bug'))));
    assert.deepEqual([bug.code, bug.vendorStatus], ['server_error', undefined]);
  });
});

describe('beginTask', () => {
  it('beginTask allows a retry of a rejected creation, and none when the answer is lost', () =>
    withVendor(async (http, server) => {
      const begin = () => beginTask(http, { path: '/tasks', body: '{}', ...limits });
      server.answer((response) => sendJson(response, 503, '{}'));
      assert.equal(readFailure(await errorOf(begin()), false)?.reason, 'status');
      server.answer(() => server.reset());
      const lost = await errorOf(begin());
      assert.deepEqual([lost.code, readFailure(lost, true)], ['outcome_unknown', undefined]);
    }));
});
