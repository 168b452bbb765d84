import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';
import { readAccountMoney } from '../../../shared/accounts/account-money.ts';
import { held, streamed } from '../../support/chat-requests.ts';
import { eventually } from '../../support/eventually.ts';
import { JobRecords, jobIdOf, later } from '../../support/job-records.ts';
import { leftovers } from '../../support/leftovers.ts';
import { makeLimitedAccount } from '../../support/limited-account.ts';
import { makeApiKey } from '../../support/make-api-key.ts';
import { readSse, textOf, type WireEvent } from '../../support/sse-events.ts';
import { vendorCalls } from '../../support/vendor-journal.ts';

const question = 'WORDS:1000@50';
const prompt = 4 + 3 + countTokens(question);
const first = (count: number): string => Array.from({ length: count }, (_, index) => `word${index + 1}`).join(' ');

async function usageOf(records: JobRecords, id: string) {
  const row = await records.ended(id);
  return { ...row, usage: JSON.parse(row.usage ?? 'null') };
}

/** Reads a stream to its end, or as far as `until` says. */
async function read(response: Response, until = Number.POSITIVE_INFINITY): Promise<WireEvent[]> {
  const events: WireEvent[] = [];
  for await (const event of readSse(response)) if (events.push(event) >= until) break;
  return events;
}

/** What the chunks before the error at a stream's end have said. */
function saidBefore(events: readonly WireEvent[], code: string): string {
  const last = events.at(-1);
  assert.equal(JSON.parse(last?.data ?? '').error?.code, code);
  return textOf(events.slice(0, -1));
}

/** What a job has taken that said so much. */
function taken(said: string) {
  const completion = countTokens(said);
  const counts = { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion };
  return { ...counts, estimated: true };
}

describe('usage of an interrupted answer', () => {
  let records: JobRecords;
  before(async () => {
    records = await JobRecords.start();
  });
  after(() => records.stop());

  async function called(user: string): Promise<void> {
    await eventually(async () => assert.equal((await vendorCalls(records.gateway, user)).length, 1));
  }

  for (const kind of ['reset', 'eof', 'error'] as const) {
    it(`an answer interrupted by its vendor with a fault of kind ${kind} has the usage of its prompt and output so far`, async () => {
      const sandbox = { fault: { kind, after_tokens: 20 } };
      const response = await records.post(streamed(question, { sandbox }));
      const events = await read(response);
      const said = textOf(events.slice(0, -1));
      assert.equal(said, first(20));
      const { outcome, vendor, usage } = await usageOf(records, jobIdOf(response));
      assert.deepEqual([outcome, vendor, usage], ['failed', 'sandbox', taken(said)]);
    });
  }

  it('an answer cancelled by DELETE /v1/jobs/{id} has the usage of its prompt and output so far, and its job shows that', async () => {
    const response = await records.post(streamed(question), { 'x-sluice-on-disconnect': 'continue' });
    const id = jobIdOf(response);
    const events: WireEvent[] = [];
    for await (const event of readSse(response)) {
      if (events.push(event) === 10) await records.gateway.fetch(`/v1/jobs/${id}`, { method: 'DELETE' });
    }
    const said = saidBefore(events, 'cancelled');
    const { outcome, vendor, usage } = await usageOf(records, id);
    assert.deepEqual([outcome, vendor, usage], ['cancelled', 'sandbox', taken(said)]);
    const job = (await records.read(id)) as unknown as { usage: unknown };
    assert.deepEqual(job.usage, usage);
  });

  it('an answer whose client disconnects has the usage of its prompt and the output in the answer log', async () => {
    const response = await records.post(streamed(question, { user: 'left' }));
    const seen = textOf(await read(response, 10));
    const { outcome, vendor, usage } = await usageOf(records, jobIdOf(response));
    assert.deepEqual([outcome, vendor], ['cancelled', 'sandbox']);
    const [call] = await vendorCalls(records.gateway, 'left');
    const [least, most] = [countTokens(seen), countTokens(first((call?.tokens as number) + 1))];
    const { completion_tokens: completion } = usage;
    assert.ok(completion >= least && completion <= most, `${least} ≤ ${completion} ≤ ${most}`);
    assert.deepEqual({ ...usage, completion_tokens: 0, total_tokens: 0 }, { ...taken(''), total_tokens: 0 });
  });

  for (const stream of [false, true]) {
    it(`a chat cancelled before any output (${stream ? 'streamed' : 'held'}) has the usage of its prompt`, async () => {
      const controller = new AbortController();
      const user = `silent-${stream}`;
      const body = { ...held(question, { user, sandbox: { first_token_ms: 60_000 } }), stream };
      const answer = records.post(body, {}, { signal: controller.signal });
      answer.catch(() => undefined);
      await called(user);
      controller.abort();
      const id = await eventually(async () => {
        const row = await records.db.selectFrom('jobs').select('id').orderBy('created_at', 'desc').executeTakeFirst();
        const { outcome, usage } = await usageOf(records, row?.id as string);
        assert.deepEqual([outcome, usage], ['cancelled', taken('')]);
        return row?.id as string;
      });
      assert.equal((await usageOf(records, id)).vendor, 'sandbox');
    });
  }

  it('a cancelled embedding request has the usage of its inputs', async () => {
    const body = {
      model: 'sandbox-embedding',
      input: 'Hello world',
      user: 'vectors',
      sandbox: { first_token_ms: 60_000 },
    };
    const id = await records.postLater(body, {}, '/v1/embeddings');
    await called('vectors');
    await records.gateway.fetch(`/v1/jobs/${id}`, { method: 'DELETE' });
    const { outcome, usage } = await usageOf(records, id);
    assert.deepEqual([outcome, usage], ['cancelled', { prompt_tokens: 2, total_tokens: 2, estimated: true }]);
  });

  it('a chat that fails before any output has no usage', async () => {
    for (const stream of [false, true]) {
      const response = await records.post({ ...held(question, { sandbox: { fault: { kind: 'reset' } } }), stream });
      await response.text();
      const { outcome, usage } = await usageOf(records, jobIdOf(response));
      assert.deepEqual([outcome, usage], ['failed', null]);
    }
  });

  it('a message and a response whose client disconnects have the usage of their prompt and output so far', async () => {
    const bodies = {
      '/v1/messages': { model: 'sandbox-chat', max_tokens: 2000, messages: [{ role: 'user', content: question }] },
      '/v1/responses': { model: 'sandbox-responses', input: question },
    };
    for (const [path, body] of Object.entries(bodies)) {
      const response = await records.post({ ...body, stream: true }, {}, { path });
      await read(response, 20);
      const { outcome, usage, output_tokens: output } = await usageOf(records, jobIdOf(response));
      assert.deepEqual([outcome, usage.prompt_tokens, usage.estimated], ['cancelled', prompt, true]);
      assert.ok((output as number) >= 15, `${path}: ${output}`);
    }
  });

  it('a request whose client disconnects frees its concurrency slot before its usage is counted', async () => {
    const authorization = `Bearer ${await makeApiKey(records.gateway, { concurrency: 1 })}`;
    const response = await records.post(streamed(question), { authorization });
    const [worker] = records.gateway.workers;
    worker?.child.kill('SIGSTOP');
    try {
      await keepSweeperAway(records);
      await read(response, 1);
      const next = { ...later, authorization };
      await eventually(async () => assert.equal((await records.post(held('Hi'), next)).status, 202));
    } finally {
      worker?.child.kill('SIGCONT');
    }
    const { outcome, usage } = await usageOf(records, jobIdOf(response));
    assert.deepEqual([outcome, usage.estimated], ['cancelled', true]);
  });

  it('a hundred answers interrupted at once are all counted and leave nothing in Redis', async () => {
    const ids = await Promise.all(
      Array.from({ length: 100 }, async () => {
        const response = await records.post(streamed(question));
        await read(response, 5);
        return jobIdOf(response);
      }),
    );
    for (const id of ids) assert.ok((await usageOf(records, id)).usage?.completion_tokens >= 4, 'it was counted');
    assert.deepEqual(await leftovers(records.gateway.redisUrl), []);
  });

  it('eighty interrupted answers with long prompts, too many to count in time, all get a nonzero estimate', async () => {
    // A tokenizer takes a quarter of a second for what has no words, once it is this long.
    const letters = 'qxzjvkwp';
    const wordless = Array.from({ length: 200_000 }, (_, index) => letters[(index * index + (index >> 3)) % 8]).join(
      '',
    );
    const cut = await Promise.all(
      Array.from({ length: 80 }, async () => {
        const response = await records.post(streamed(`WORDS:1000@50 ${wordless}`));
        await read(response, 3);
        return jobIdOf(response);
      }),
    );
    for (const id of cut) {
      const { usage, cost } = await usageOf(records, id);
      assert.equal(usage?.estimated, true);
      assert.ok(usage.prompt_tokens >= 10_000 && usage.completion_tokens >= 2, JSON.stringify(usage));
      assert.ok((cost as number) > 0);
    }
  });
});

describe('usage of an answer that takes longer than any may', () => {
  it('an answer interrupted by its deadline has the usage of its prompt and output so far', async () => {
    const records = await JobRecords.start({ settings: { SLUICE_DEADLINE_SECONDS: '3' } });
    try {
      const response = await records.post(streamed(question));
      const said = saidBefore(await read(response), 'timeout');
      assert.ok(said.length > 100);
      const { outcome, error_code: code, usage } = await usageOf(records, jobIdOf(response));
      assert.deepEqual([outcome, code, usage], ['failed', 'timeout', taken(said)]);
    } finally {
      await records.stop();
    }
  });
});

describe('usage of a job that reached no vendor', () => {
  it('a job cancelled before any worker exists ends at once and has no usage', async () => {
    const records = await JobRecords.start({ workers: 0 });
    try {
      const id = await records.postLater(held('Hi'));
      await records.gateway.fetch(`/v1/jobs/${id}`, { method: 'DELETE' });
      const { outcome, usage, vendor } = await usageOf(records, id);
      assert.deepEqual([outcome, usage, vendor], ['cancelled', null, '']);
    } finally {
      await records.stop();
    }
  });
});

describe('usage of an answer whose worker fails', () => {
  let records: JobRecords;
  before(async () => {
    records = await JobRecords.start({ workers: 0, settings: { SLUICE_SHUTDOWN_SECONDS: '1' } });
  });
  after(() => records.stop());

  /** What an account has been charged. */
  const charged = async (account: string) => (await readAccountMoney(records.redis, account))?.charged;

  it('an answer cancelled after a retry is recorded with two attempts', async () => {
    const worker = await records.gateway.startWorker();
    const fault = { kind: 'error', status: 503, times: 1, key: 'cut after a retry' };
    const response = await records.post(streamed(question, { sandbox: { fault } }));
    await read(response, 10);
    const { outcome, attempts } = await usageOf(records, jobIdOf(response));
    assert.deepEqual([outcome, attempts], ['cancelled', 2]);
    await worker.stop();
  });

  it('an answer whose worker is stopped has the usage of its prompt and output so far', async () => {
    const worker = await records.gateway.startWorker();
    const response = await records.post(streamed(question));
    const [events] = await Promise.all([read(response), worker.stop()]);
    const said = saidBefore(events, 'stream_interrupted');
    assert.deepEqual((await usageOf(records, jobIdOf(response))).usage, taken(said));
  });

  it('an answer whose worker is killed is counted by the next worker that claims it', async () => {
    const worker = await records.gateway.startWorker();
    const response = await records.post(streamed(question));
    const reading = read(response);
    await eventually(async () =>
      assert.ok((await records.redis.exists(...(await logsOf(jobIdOf(response))))) === 1, 'no log yet'),
    );
    await worker.kill();
    const next = await records.gateway.startWorker();
    const said = saidBefore(await reading, 'stream_interrupted');
    const { attempts, vendor, usage } = await usageOf(records, jobIdOf(response));
    assert.deepEqual([attempts, vendor, usage], [1, 'sandbox', taken(said)]);
    await next.stop();
  });

  it('a job cancelled while its worker is frozen is counted when the worker resumes, and blocks no other request', async () => {
    const authorization = `Bearer ${await makeApiKey(records.gateway, { concurrency: 1 })}`;
    const worker = await records.gateway.startWorker();
    const first = await records.postLater(streamed(question), { authorization });
    await read(await records.gateway.fetch(`/v1/jobs/${first}/events`, { headers: { authorization } }), 5);
    worker.child.kill('SIGSTOP');
    await records.gateway.fetch(`/v1/jobs/${first}`, { method: 'DELETE', headers: { authorization } });
    const second = await records.post(held('Hi'), { ...later, authorization });
    assert.equal(second.status, 202);
    worker.child.kill('SIGCONT');
    assert.ok((await usageOf(records, first)).usage.completion_tokens >= 4, 'it is counted all the same');
    assert.equal((await usageOf(records, jobIdOf(second))).outcome, 'completed');
    await worker.stop();
  });

  it('a response deleted while its worker is frozen is counted when the worker resumes', async () => {
    const worker = await records.gateway.startWorker();
    const body = { model: 'sandbox-chat', input: question, background: true, stream: true };
    const response = await records.post(body, {}, { path: '/v1/responses' });
    const id = jobIdOf(response);
    let seen = 0;
    for await (const event of readSse(response)) {
      if (event.event === 'response.output_text.delta') seen++;
      if (seen === 20) break;
    }
    worker.child.kill('SIGSTOP');
    await records.gateway.fetch(`/v1/responses/resp_${id}`, { method: 'DELETE' });
    worker.child.kill('SIGCONT');
    const { outcome, usage } = await usageOf(records, id);
    assert.deepEqual([outcome, usage.estimated], ['cancelled', true]);
    assert.ok(usage.completion_tokens >= 19, JSON.stringify(usage));
    await worker.stop();
  });

  it('a cancelled job is counted and settled by its worker, without the sweeper, while Redis is out of memory', async () => {
    const worker = await records.gateway.startWorker();
    const id = await records.postLater(streamed(question));
    await read(await records.gateway.fetch(`/v1/jobs/${id}/events`), 10);
    worker.child.kill('SIGSTOP');
    await records.gateway.fetch(`/v1/jobs/${id}`, { method: 'DELETE' });
    await keepSweeperAway(records);
    await records.redis.config('SET', 'maxmemory', '1');
    try {
      worker.child.kill('SIGCONT');
      await eventually(() => records.ended(id), 20_000);
    } finally {
      await records.redis.config('SET', 'maxmemory', '0');
    }
    const { usage } = await usageOf(records, id);
    assert.ok(usage?.completion_tokens >= 9, JSON.stringify(usage));
    // The api looks at Redis's memory once a second, and takes nothing new until it has seen that there is enough.
    await eventually(() => records.postLater(held('Hi')));
    await worker.stop();
  });

  it('a job cancelled after its worker was killed is counted by the next worker that claims it', async () => {
    const worker = await records.gateway.startWorker();
    const id = await records.postLater(streamed(question));
    await read(await records.gateway.fetch(`/v1/jobs/${id}/events`), 10);
    await worker.kill();
    await records.gateway.fetch(`/v1/jobs/${id}`, { method: 'DELETE' });
    const next = await records.gateway.startWorker();
    // Its lock has to run out first.
    const { outcome, usage, cost } = await eventually(() => usageOf(records, id), 40_000);
    assert.deepEqual([outcome, usage.estimated], ['cancelled', true]);
    assert.ok(usage.completion_tokens >= 9 && (cost as number) > 0, JSON.stringify(usage));
    await next.stop();
  });

  it('a job cancelled while its worker stays frozen is charged its whole hold after a minute, and settled once', async () => {
    const worker = await records.gateway.startWorker();
    const limited = await makeLimitedAccount(records.gateway, { credit: 1_000_000_000 });
    const authorization = `Bearer ${limited.key}`;
    const id = await records.postLater(streamed(question, { max_tokens: 2000 }), { authorization });
    const following = await records.gateway.fetch(`/v1/jobs/${id}/events`, { headers: { authorization } });
    const held = (await readAccountMoney(records.redis, limited.id))?.held;
    await read(following, 5);
    worker.child.kill('SIGSTOP');
    await records.gateway.fetch(`/v1/jobs/${id}`, { method: 'DELETE', headers: { authorization } });
    await eventually(async () => {
      const keys = await Promise.all(['*:holds', '*:running:*'].map((pattern) => records.redis.keys(pattern)));
      assert.deepEqual(keys.flat(), []);
    }, 80_000);
    const { outcome, usage, cost } = await usageOf(records, id);
    assert.deepEqual([outcome, usage, cost], ['cancelled', null, held]);
    assert.deepEqual([(held as number) > 0, await charged(limited.id)], [true, held]);
    worker.child.kill('SIGCONT');
    await worker.stop();
    assert.deepEqual((await usageOf(records, id)).usage, null, 'it is settled once');
    assert.equal(await charged(limited.id), held);
    assert.equal(await records.outboxes(), 0);
  });
});

/** Lets no sweeper look at what is held now for an hour: what is settled meanwhile, others have settled. */
async function keepSweeperAway({ redis }: JobRecords): Promise<void> {
  const { accountKeys } = await import('../../../shared/redis/keys.ts');
  for (const key of accountKeys.allHolds()) {
    for (const member of await redis.zrange(key, '0', '-1'))
      await redis.zadd(key, 'XX', Date.now() + 3_600_000, member);
  }
}

async function logsOf(id: string): Promise<[string]> {
  const { jobKeys } = await import('../../../shared/redis/keys.ts');
  return [jobKeys.log(id)];
}
