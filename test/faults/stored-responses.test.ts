import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type OpenAI from 'openai';
import { jobKeys } from '../../shared/redis/keys.ts';
import { stopDatabase } from '../support/database-faults.ts';
import { assertErrorAnswer } from '../support/error-answers.ts';
import { eventually } from '../support/eventually.ts';
import { TestGateway } from '../support/gateway.ts';
import { JobRecords } from '../support/job-records.ts';
import { startRedisCluster } from '../support/redis-cluster.ts';
import { readSse, sseEvents } from '../support/sse-events.ts';
import { vendorCalls } from '../support/vendor-journal.ts';

type Response = OpenAI.Responses.Response;

const models = ['sandbox-chat', 'sandbox-responses'];
const jobIdOf = ({ id }: { id: string }): string => id.slice('resp_'.length);

/** Responses of one gateway, asked for at any of its apis. */
class Responses {
  readonly #gateway: TestGateway;

  constructor(gateway: TestGateway) {
    this.#gateway = gateway;
  }

  fetch(path: string, api = 0, method = 'GET'): Promise<globalThis.Response> {
    return this.#gateway.fetch(`/v1/responses${path}`, { method, url: this.#gateway.apis[api]?.url as string });
  }

  post(body: object, api = 0, headers: Record<string, string> = {}): Promise<globalThis.Response> {
    const url = this.#gateway.apis[api]?.url as string;
    return this.#gateway.fetch('/v1/responses', { method: 'POST', body: JSON.stringify(body), headers, url });
  }

  async create(body: object, api = 0): Promise<Response> {
    const answer = await this.post(body, api);
    assert.equal(answer.status, 200, `${answer.status}`);
    return (await answer.json()) as Response;
  }

  async read({ id }: { id: string }, api = 0): Promise<Response> {
    const answer = await this.fetch(`/${id}`, api);
    assert.equal(answer.status, 200, `${answer.status}`);
    return (await answer.json()) as Response;
  }

  ended(response: { id: string }, api = 0, ms = 10_000): Promise<Response> {
    return eventually(async () => {
      const read = await this.read(response, api);
      assert.ok(read.status !== 'queued' && read.status !== 'in_progress', 'it has not ended');
      return read;
    }, ms);
  }

  async isGone({ id }: { id: string }, api: number): Promise<void> {
    await assertErrorAnswer(await this.fetch(`/${id}`, api), 404, 'not_found');
    await assertErrorAnswer(await this.fetch(`/${id}`, api, 'DELETE'), 404, 'not_found');
    const next = { model: 'sandbox-chat', input: 'Hi', previous_response_id: id };
    await assertErrorAnswer(await this.post(next, api), 400, 'previous_response_not_found');
  }
}

const textOf = ({ output }: Response): string | undefined => {
  const message = output.find((item) => item.type === 'message');
  return message?.content[0]?.type === 'output_text' ? message.content[0].text : undefined;
};

/** What one api has made, the other reads, goes on from, streams, cancels and deletes. */
async function shareAmongTwo(gateway: TestGateway, model: string): Promise<void> {
  const responses = new Responses(gateway);
  const one = await responses.create({ model, input: 'Reply with exactly: one' });
  assert.deepEqual(await responses.read(one, 1), one);
  const two = await responses.create({ model, input: 'Reply with exactly: two', previous_response_id: one.id }, 1);
  const list = (await (await responses.fetch(`/${two.id}/input_items`)).json()) as { data: unknown[] };
  assert.equal(list.data.length, 3);
  const text = { model, background: true, stream: true, sandbox: { tokens_per_second: 40 } };
  const begun = readSse(await responses.post({ ...text, input: 'Count from 1 to 12' }));
  const { value: created } = await begun.next();
  const { response } = JSON.parse(created?.data ?? '') as { response: Response };
  await begun.return(undefined);
  const whole = sseEvents(await (await responses.fetch(`/${response.id}?stream=true`, 1)).text());
  assert.equal(whole.at(-1)?.data, '[DONE]');
  assert.equal((await responses.read(response)).status, 'completed');
  for (const way of ['cancel', 'delete']) {
    const slow = { model, input: 'Hi', background: true, sandbox: { first_token_ms: 600_000 } };
    const running = await responses.create({ ...slow, metadata: { test_id: `${model} ${way}` } });
    await eventually(async () => {
      assert.equal((await vendorCalls(gateway, `${model} ${way}`)).length, 1);
    });
    if (way === 'cancel') {
      const cancelled = (await (await responses.fetch(`/${running.id}/cancel`, 1, 'POST')).json()) as Response;
      assert.equal(cancelled.status, 'cancelled');
    } else {
      assert.equal((await responses.fetch(`/${running.id}`, 1, 'DELETE')).status, 200);
      await responses.isGone(running, 0);
    }
    await eventually(async () => {
      assert.equal((await vendorCalls(gateway, `${model} ${way}`))[0]?.ended, 'client_closed');
    });
  }
  assert.equal((await responses.fetch(`/${one.id}`, 1, 'DELETE')).status, 200);
  await responses.isGone(one, 0);
  assert.equal((await responses.read(two)).status, 'completed', 'a later turn holds its own copy');
}

describe('stored responses on two apis', () => {
  it('a response made at one api is read, continued, streamed, cancelled and deleted at the other', async () => {
    const gateway = await TestGateway.start({ apis: 2 });
    try {
      for (const model of models) await shareAmongTwo(gateway, model);
    } finally {
      await gateway.stop();
    }
  });

  it('responses are shared between two apis on a Redis Cluster', async () => {
    const cluster = await startRedisCluster();
    const gateway = await TestGateway.start({ redisUrl: cluster.url, apis: 2 }).catch(async (error) => {
      await cluster.stop();
      throw error;
    });
    try {
      for (const model of models) await shareAmongTwo(gateway, model);
    } finally {
      await gateway.stop();
      await cluster.stop();
    }
  });

  it('a background response whose worker is killed ends with response.failed, and is read as failed', async () => {
    const records = await JobRecords.start({ apis: 2 });
    const responses = new Responses(records.gateway);
    try {
      for (const model of ['sandbox-reasoning', 'sandbox-responses']) {
        const body = {
          reasoning: { effort: 'low' },
          model,
          input: 'WORDS:400',
          background: true,
          stream: true,
          sandbox: { tokens_per_second: 20 },
        };
        const events = readSse(await responses.post(body));
        let deltas = 0;
        while (deltas < 3) {
          const { value } = await events.next();
          if (JSON.parse(value?.data ?? '{}').type === 'response.output_text.delta') deltas++;
        }
        await Promise.all([records.gateway.workers.pop()?.kill(), records.gateway.startWorker()]);
        let last = '';
        for await (const { data } of events) last = data;
        const { type, response } = JSON.parse(last) as { type: string; response: Response };
        assert.deepEqual([type, response.status, response.error?.code], ['response.failed', 'failed', 'server_error']);
        const read = await responses.read(response, 1);
        assert.deepEqual(read, response);
        assert.deepEqual(
          read.output.map((item) => item.type),
          ['reasoning'],
        );
        const replay = async () => sseEvents(await (await responses.fetch(`/${response.id}?stream=true`, 1)).text());
        assert.equal((await replay()).at(-1)?.data, last);
        await records.forget(jobIdOf(response));
        assert.equal((await replay()).at(-1)?.data, last);
        assert.deepEqual(await responses.read(response, 1), read);
      }
    } finally {
      await records.stop();
    }
  });

  it('responses continue when the api that started them is killed, in the background and in the foreground', async () => {
    const records = await JobRecords.start({ apis: 2 });
    const responses = new Responses(records.gateway);
    try {
      const ask = { model: 'sandbox-chat', input: 'WORDS:30', sandbox: { tokens_per_second: 20 } };
      const streams = [false, true].map((background) =>
        responses.post({ ...ask, background, stream: true, metadata: { test_id: 'killed' } }, 1),
      );
      const ids: string[] = [];
      for (const stream of streams) {
        const { value } = await readSse(await stream).next();
        ids.push((JSON.parse(value?.data ?? '') as { response: Response }).response.id);
      }
      await records.gateway.apis[1]?.kill();
      for (const id of ids) {
        const ended = await responses.ended({ id });
        assert.deepEqual([ended.status, textOf(ended)?.split(' ').length], ['completed', 30]);
        await records.forget(jobIdOf({ id }));
        assert.deepEqual(await responses.read({ id }), ended);
      }
      assert.equal((await vendorCalls(records.gateway, 'killed')).length, 2);
    } finally {
      await records.stop();
    }
  });
});

describe('stored responses while the database is stopped', () => {
  it('foreground responses continue without the database, work that needs it gets 503, and all are stored afterwards', async () => {
    const records = await JobRecords.start({ apis: 2 });
    const responses = new Responses(records.gateway);
    let bringBack = async (): Promise<void> => undefined;
    const unavailable = async (answer: globalThis.Response): Promise<void> => {
      assert.ok(Number(answer.headers.get('retry-after')) >= 1, 'it does not say when to come back');
      await assertErrorAnswer(answer, 503, 'service_unavailable');
    };
    try {
      const model = 'sandbox-responses';
      const old = await responses.create({ model, input: 'Reply with exactly: old' });
      await records.forget(jobIdOf(old));
      const recent = await responses.create({ model, input: 'Reply with exactly: recent' });
      await responses.read(recent, 1);
      const background = { model, input: 'Hi', background: true, metadata: { test_id: 'refused' } };
      bringBack = await stopDatabase(records.gateway);
      const made: Response[] = [];
      for (let turn = 0, previous = recent.id; turn < 6; turn++) {
        const body = { model, input: `Reply with exactly: turn ${turn}`, previous_response_id: previous };
        const next = await responses.create(body, turn % 2);
        assert.deepEqual(await responses.read(next, (turn + 1) % 2), next);
        previous = next.id;
        made.push(next);
      }
      await Promise.all([
        responses.post(background).then(unavailable),
        responses.post(background, 1, { 'idempotency-key': 'refused' }).then(unavailable),
        responses.post({ ...background, background: false }, 0, { prefer: 'respond-async' }).then(unavailable),
        responses.fetch(`/${old.id}`).then(unavailable),
        responses.fetch(`/${old.id}`, 1, 'DELETE').then(unavailable),
        responses.fetch(`/${old.id}/input_items`, 1).then(unavailable),
        responses.post({ model, input: 'Hi', previous_response_id: old.id }).then(unavailable),
        responses.fetch(`/${recent.id}`, 0, 'DELETE').then(unavailable),
      ]);
      await bringBack();
      for (const response of [old, recent, ...made]) {
        if (response !== old) await records.forget(jobIdOf(response));
        assert.deepEqual(await responses.read(response), response);
      }
      assert.equal(await records.metric('sluice_job_records_total'), 2 + made.length);
      assert.deepEqual(await vendorCalls(records.gateway, 'refused'), [], 'a refused one was run');
      const last = made.at(-1) as Response;
      const { data } = (await (await responses.fetch(`/${last.id}/input_items`)).json()) as { data: unknown[] };
      assert.equal(data.length, 2 * made.length + 1);
      for (const response of [old, last]) {
        assert.equal((await responses.fetch(`/${response.id}`, 0, 'DELETE')).status, 200);
        await responses.isGone(response, 1);
      }
    } finally {
      await bringBack();
      await records.stop();
    }
  });
});

describe('stored responses after Redis is emptied', () => {
  it('background responses fail within 60 s after Redis is emptied, and responses in the database can be continued', async (t) => {
    const records = await JobRecords.start({ apis: 2, settings: { WORKER_CONCURRENCY_CHAT: '2' } });
    const responses = new Responses(records.gateway);
    try {
      const model = 'sandbox-responses';
      const old = await responses.create({ model, input: 'Reply with exactly: old' });
      await records.ended(jobIdOf(old));
      const slow = { model, background: true, sandbox: { first_token_ms: 600_000 }, metadata: { test_id: 'lost' } };
      const lost: Response[] = [];
      for (let count = 0; count < 4; count++) lost.push(await responses.create({ ...slow, input: `lost ${count}` }));
      const statuses = async () => (await Promise.all(lost.map((each) => responses.read(each)))).map((r) => r.status);
      await eventually(async () => {
        assert.deepEqual((await statuses()).sort(), ['in_progress', 'in_progress', 'queued', 'queued']);
      });
      await records.redis.flushall();
      const flushedAt = Date.now();
      assert.equal(
        (await responses.create({ model, input: 'Hi', previous_response_id: old.id }, 1)).status,
        'completed',
      );
      assert.deepEqual(await responses.read(old, 1), old);
      for (const response of lost) {
        const { status, error, output } = await responses.ended(response, 1, 60_000);
        assert.deepEqual([status, error?.code, output], ['failed', 'server_error', []]);
      }
      t.diagnostic(`all four had failed ${Date.now() - flushedAt} ms after Redis was emptied`);
      const [first, second] = lost as [Response, Response];
      const cancelled = (await (await responses.fetch(`/${first.id}/cancel`, 0, 'POST')).json()) as Response;
      assert.equal(cancelled.status, 'failed', 'what has ended has ended');
      const next = await responses.post({ model, input: 'Hi', previous_response_id: first.id });
      assert.match((await assertErrorAnswer(next, 400, 'invalid_request_error')).message, /has failed/);
      assert.equal((await responses.fetch(`/${second.id}`, 0, 'DELETE')).status, 200);
      await responses.isGone(second, 1);
      assert.equal((await vendorCalls(records.gateway, 'lost')).length, 2, 'a lost one was run again');
      assert.equal(await records.redis.exists(jobKeys.state(jobIdOf(first))), 0);
    } finally {
      await records.stop();
    }
  });
});
