import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type OpenAI from 'openai';
import { sha256 } from '../../../api/admission/preferences.ts';
import { defaultAccountId } from '../../../shared/accounts/api-keys.ts';
import { accountKeys } from '../../../shared/redis/keys.ts';
import { connectRedis } from '../../../shared/redis/redis.ts';
import { createLogger } from '../../../shared/runtime/log.ts';
import { held, streamed } from '../../support/chat-requests.ts';
import { assertErrorAnswer } from '../../support/error-answers.ts';
import { eventually } from '../../support/eventually.ts';
import { oneAttempt, TestGateway } from '../../support/gateway.ts';
import { leftovers, withLostReadersMs } from '../../support/leftovers.ts';
import { accountOfTag, makeApiKey } from '../../support/make-api-key.ts';
import { sseEvents, textOf } from '../../support/sse-events.ts';
import { vendorCalls } from '../../support/vendor-journal.ts';

describe('Idempotency-Key', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await TestGateway.start({ apis: 2, configuration: oneAttempt });
    // A key's first request reads the database, which may have just begun.
    for (const { url } of gateway.apis) {
      await eventually(async () => assert.equal((await gateway.fetch('/v1/models', { url })).status, 200));
    }
  });
  after(() => gateway.stop());

  function post(key: string, body: object, init: RequestInit & { url?: string } = {}): Promise<Response> {
    const headers = { 'idempotency-key': key, ...(init.headers as Record<string, string>) };
    return gateway.fetch('/v1/chat/completions', { ...init, method: 'POST', body: JSON.stringify(body), headers });
  }

  it('a repeat of an idempotency key whose job still runs gets 504 after its own timeout, and the job goes on', async () => {
    const body = held('WORDS:30@5', { user: 'impatient' });
    const first = post('impatient', body);
    await eventually(async () => assert.equal((await vendorCalls(gateway, 'impatient')).length, 1));
    const again = await post('impatient', body, { headers: { 'x-stainless-timeout': '1' } });
    await assertErrorAnswer(again, 504, 'timeout');
    assert.equal((await first).status, 200);
  });

  it('a later repeat of an idempotency key replays the answer of one vendor call, with Idempotent-Replayed', async () => {
    const body = held('Reply with exactly: once', { user: 'later' });
    const first = await post('later', body);
    assert.equal(first.status, 200, await first.clone().text());
    assert.equal(first.headers.get('idempotent-replayed'), null);
    const answer = await first.json();
    for (const { url } of gateway.apis) {
      const again = await post('later', body, { url });
      assert.equal(again.status, 200, await again.clone().text());
      assert.equal(again.headers.get('idempotent-replayed'), 'true');
      assert.equal(again.headers.get('x-request-id'), first.headers.get('x-request-id'));
      assert.deepEqual(await again.json(), answer);
    }
    assert.equal((await vendorCalls(gateway, 'later')).length, 1);
  });

  it('concurrent repeats of an idempotency key on two api processes get one answer of one vendor call', async () => {
    const body = held('WORDS:10@50', { user: 'together' });
    const answers = await Promise.all(
      Array.from({ length: 8 }, async (_, index) => {
        const response = await post('together', body, { url: gateway.apis[index % 2]?.url as string });
        assert.equal(response.status, 200);
        return (await response.json()) as OpenAI.Chat.ChatCompletion;
      }),
    );
    assert.equal(new Set(answers.map(({ id }) => id)).size, 1);
    for (const answer of answers) assert.deepEqual(answer, answers[0]);
    assert.equal((await vendorCalls(gateway, 'together')).length, 1);
  });

  it('every repeat of a streamed request by its idempotency key gets the whole stream, event for event', async () => {
    const body = streamed('WORDS:20@60', { user: 'streams' });
    const first = await post('streams', body);
    const whole = first.text();
    const beside = await Promise.all(
      gateway.apis.map(async ({ url }) => (await post('streams', body, { url })).text()),
    );
    const afterwards = await (await post('streams', body)).text();
    const events = sseEvents(await whole);
    assert.equal(events.at(-1)?.data, '[DONE]');
    assert.equal(textOf(events).split(' ').length, 20);
    for (const text of [...beside, afterwards]) assert.deepEqual(sseEvents(text), events);
    assert.equal((await vendorCalls(gateway, 'streams')).length, 1);
  });

  it('an idempotency key with another body returns 422', async () => {
    await post('reused', held('Hi'));
    const error = await assertErrorAnswer(await post('reused', held('Hi there')), 422, 'idempotency_key_reused');
    assert.equal(error.param, 'Idempotency-Key');
  });

  it('an idempotency key belongs to its account', async () => {
    const authorization = `Bearer ${await makeApiKey(gateway, { accountId: 'another' })}`;
    const body = held('Hi', { user: 'accounts' });
    const mine = await post('accounts', body);
    const theirs = await post('accounts', body, { headers: { authorization } });
    assert.notEqual(mine.headers.get('x-request-id'), theirs.headers.get('x-request-id'));
    assert.equal((await vendorCalls(gateway, 'accounts')).length, 2);
  });

  it('accounts of one Redis tag have their idempotency keys for themselves, whichever body is sent', async () => {
    const authorization = `Bearer ${await makeApiKey(gateway, { accountId: accountOfTag() })}`;
    const theirs = { headers: { authorization } };
    const body = held('Hi', { user: 'neighbours' });
    const idOf = ({ headers }: Response): string | null => headers.get('x-request-id');
    const mine = idOf(await post('neighbours', body));
    const first = await post('neighbours', body, theirs);
    assert.equal(first.headers.get('idempotent-replayed'), null);
    assert.notEqual(idOf(first), mine);
    assert.equal(idOf(await post('neighbours', body, theirs)), idOf(first));
    assert.equal(idOf(await post('neighbours', body)), mine);
    await assertErrorAnswer(await post('neighbours', held('Other'), theirs), 422, 'idempotency_key_reused');
    assert.equal((await vendorCalls(gateway, 'neighbours')).length, 2);
    const others = await post('neighbours-2', held('One', { user: 'neighbours-2' }));
    const other = await post('neighbours-2', held('Two', { user: 'neighbours-2' }), theirs);
    assert.deepEqual([others.status, other.status], [200, 200]);
  });

  it('an account that came second to an idempotency key finds its job after the first one has lost its own', async () => {
    const authorization = `Bearer ${await makeApiKey(gateway, { accountId: accountOfTag() })}`;
    const [user, theirs] = ['outlived', { headers: { authorization } }];
    await post(user, held('Hi', { user }));
    const first = await post(user, held('Hi', { user }), theirs);
    const redis = await connectRedis(gateway.redisUrl, createLogger('silent', 'test').log);
    try {
      const hash = sha256(`chat ${user}`);
      assert.equal(await redis.client.del(accountKeys.idempotency(defaultAccountId, hash)), 1);
    } finally {
      await redis.close();
    }
    const again = await post(user, held('Hi', { user }), theirs);
    assert.equal(again.headers.get('x-request-id'), first.headers.get('x-request-id'));
    assert.equal((await vendorCalls(gateway, user)).length, 2);
  });

  it('an idempotency key that an account has second is free again after a 500', async () => {
    const authorization = `Bearer ${await makeApiKey(gateway, { accountId: accountOfTag() })}`;
    const [user, theirs] = ['second-fails', { headers: { authorization } }];
    assert.equal((await post(user, held('Hi'))).status, 200);
    const failing = held('Hi', { user, sandbox: { fault: { kind: 'error', status: 500 } } });
    for (let index = 0; index < 2; index++) assert.equal((await post(user, failing, theirs)).status, 500);
    assert.equal((await vendorCalls(gateway, user)).length, 2);
  });

  it('an idempotency key is free again after a 429 or 5xx, and replays a 400', async () => {
    for (const [status, shown, calls] of [
      [429, 429, 2],
      [500, 500, 2],
      [529, 503, 2],
      [400, 400, 1],
    ] as const) {
      const user = `status-${status}`;
      const body = held('Hi', { user, sandbox: { fault: { kind: 'error', status } } });
      const first = await post(user, body);
      const second = await post(user, body);
      assert.deepEqual([first.status, second.status], [shown, shown]);
      assert.equal((await vendorCalls(gateway, user)).length, calls, user);
      assert.equal(first.headers.get('x-request-id') === second.headers.get('x-request-id'), calls === 1);
    }
  });

  it('a refused request does not use up its idempotency key', async () => {
    const body = held('Hi', { user: 'refused' });
    await assertErrorAnswer(await post('refused', { ...body, temperature: 9 }), 400, 'invalid_request_error');
    assert.equal((await post('refused', body)).status, 200);
  });

  it('a job with an idempotency key continues after its client disconnects, and a repeat gets the answer', async () => {
    const controller = new AbortController();
    const body = held('WORDS:60@20', { user: 'left' });
    const left = post('left', body, { signal: controller.signal });
    await eventually(async () => assert.equal((await vendorCalls(gateway, 'left')).length, 1));
    controller.abort();
    await assert.rejects(left);
    const answer = (await (await post('left', body)).json()) as OpenAI.Chat.ChatCompletion;
    assert.equal(answer.choices[0]?.message.content?.split(' ').length, 60);
    const calls = await vendorCalls(gateway, 'left');
    assert.deepEqual(
      calls.map(({ ended }) => ended),
      ['completed'],
    );
  });

  it('an idempotency key works with Prefer: respond-async and after the api process was killed', async () => {
    const body = held('Reply with exactly: kept', { user: 'restart' });
    const headers = { prefer: 'respond-async' };
    const first = (await (await post('restart', body, { headers })).json()) as { id: string };
    await gateway.apis[0]?.kill();
    const { url } = await gateway.startApi();
    const again = await post('restart', body, { url, headers });
    assert.equal(again.status, 202);
    assert.equal(((await again.json()) as { id: string }).id, first.id);
    const answer = (await (await post('restart', body, { url })).json()) as OpenAI.Chat.ChatCompletion;
    assert.equal(answer.choices[0]?.message.content, 'kept');
    assert.equal((await vendorCalls(gateway, 'restart')).length, 1);
    assert.deepEqual(await leftovers(gateway.redisUrl, { withinMs: withLostReadersMs }), []);
  });
});

describe('Idempotency-Key of an unclaimed request', () => {
  it('an idempotency key is free again when no worker claims its job in time', async () => {
    const gateway = await TestGateway.start({ workers: 0, settings: { SLUICE_QUEUE_WAIT_SECONDS: '1' } });
    try {
      const request = { method: 'POST', body: JSON.stringify(held('Hi')), headers: { 'idempotency-key': 'early' } };
      const first = await gateway.fetch('/v1/chat/completions', request);
      await assertErrorAnswer(first, 503, 'service_unavailable');
      await gateway.startWorker();
      const second = await gateway.fetch('/v1/chat/completions', request);
      assert.equal(second.status, 200);
      assert.equal(second.headers.get('idempotent-replayed'), null);
    } finally {
      await gateway.stop();
    }
  });
});
