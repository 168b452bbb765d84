import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { accountKeys, jobKeys } from '../../../shared/redis/keys.ts';
import { message, textOfMessage } from '../../support/anthropic-client.ts';
import { held, streamed, streamedText } from '../../support/chat-requests.ts';
import { assertErrorAnswer } from '../../support/error-answers.ts';
import { eventually } from '../../support/eventually.ts';
import { startFailover } from '../../support/failover.ts';
import { GatedVendor, gatedText } from '../../support/gated-vendor.ts';
import type { TestGateway } from '../../support/gateway.ts';
import { JobRecords, jobIdOf } from '../../support/job-records.ts';
import { leftovers, withLostReadersMs } from '../../support/leftovers.ts';
import { makeLimitedAccount } from '../../support/limited-account.ts';
import { makeApiKey, revokeKey } from '../../support/make-api-key.ts';
import { type JournalEntry, vendorCalls } from '../../support/vendor-journal.ts';

async function textOf(response: Response): Promise<string | null | undefined> {
  return ((await response.json()) as OpenAI.ChatCompletion).choices[0]?.message.content;
}

describe('retries of client libraries', () => {
  let vendor: GatedVendor;
  let records: JobRecords;
  let gateway: TestGateway;
  before(async () => {
    vendor = await GatedVendor.start();
    records = await JobRecords.start({ apis: 2, configuration: vendor.configuration });
    gateway = records.gateway;
  });
  after(async () => {
    await records?.stop();
    await vendor?.close();
  });

  const calls = (user: string): Promise<JournalEntry[]> => vendorCalls(gateway, user);

  /** Waits until the vendors were called so often, the sandbox and the one with the gate together. */
  async function untilCalled(user: string, count = 1): Promise<void> {
    await eventually(async () => assert.equal((await calls(user)).length + vendor.callsOf(user).length, count));
  }

  /** Lets the vendor answer what has been asked of it. */
  function release(user: string): void {
    for (const call of vendor.callsOf(user)) call.release();
  }

  /** Sends what adopts a job, whose vendor answers once that is so. */
  async function adopting<Answer>(user: string, send: () => Promise<Answer>): Promise<Answer> {
    const adopted = await records.jobsWith('adopter');
    const answer = send();
    answer.catch(() => undefined);
    await records.untilMore('adopter', adopted);
    release(user);
    return await answer;
  }

  async function untilOver(user: string): Promise<JournalEntry[]> {
    return await eventually(async () => {
      const all = await calls(user);
      assert.ok(all.length > 0 && all.every(({ ended }) => ended !== null), `calls of ${user} still run`);
      return all;
    });
  }

  /** Sends a try as a client library does: 0 is its first. */
  function attempt(
    count: number,
    body: object,
    { headers = {}, ...more }: { headers?: Record<string, string>; url?: string; signal?: AbortSignal } = {},
  ): Promise<Response> {
    return records.post(body, { 'x-stainless-retry-count': String(count), ...headers }, more);
  }

  /** A first try whose connection breaks while its vendor works at it; its api process has noticed. */
  async function broken(body: { user?: string | undefined }, more: Parameters<typeof attempt>[2] = {}): Promise<void> {
    const controller = new AbortController();
    const left = await records.jobsWith('left');
    const admissions = (): Promise<number> =>
      records.metric('sluice_admissions_total\\{capability="chat",verdict="admitted"');
    const before = await admissions();
    const answer = attempt(0, body, { ...more, signal: controller.signal });
    await untilCalled(body.user as string);
    // A worker may be faster than the reply to the admission; a caller that leaves before that leaves nothing for a retry.
    await eventually(async () => assert.ok((await admissions()) > before, 'the reply to the admission is under way'));
    controller.abort();
    await assert.rejects(answer);
    await records.untilMore('left', left);
  }

  async function chargedTo(account: string): Promise<number> {
    return Number(await records.redis.hget(accountKeys.account(account), 'charged'));
  }

  for (const stream of [false, true]) {
    const kind = stream ? 'a streamed' : 'a held';
    it(`the retry of OpenAI's client for ${kind} answer, whose api process was killed, gets that of the first call, charged once`, async () => {
      const user = `killed-${stream}`;
      const account = await makeLimitedAccount(gateway, { credit: 1e12 });
      const { url, fetch, tries } = await startFailover(gateway, () => vendor.callsOf(user).length);
      const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: account.key, maxRetries: 2, fetch });
      // The first token of a stream ends the retries.
      const more = { user, model: 'gated-whole' };
      const text = await adopting(user, async () => {
        if (stream) return await streamedText(await client.chat.completions.create(streamed('Hi', more)));
        return (await client.chat.completions.create(held('Hi', more))).choices[0]?.message.content;
      });
      assert.equal(text, gatedText);
      assert.equal(tries(), 2);
      assert.deepEqual(
        vendor.callsOf(user).map(({ ended }) => ended),
        ['answered'],
      );
      const rows = await eventually(async () => {
        const all = await records.db.selectFrom('jobs').selectAll().where('account_id', '=', account.id).execute();
        assert.equal(all.length, 1);
        return all;
      });
      assert.equal(rows[0]?.outcome, 'completed');
      assert.ok(Number(rows[0]?.cost) > 0);
      assert.equal(await chargedTo(account.id), Number(rows[0]?.cost));
    });
  }

  it("the retry of Anthropic's client, whose api process was killed, gets the answer of the first call", async () => {
    const { url, fetch, tries } = await startFailover(gateway, () => vendor.callsOf('claude').length);
    const client = new Anthropic({ baseURL: url, apiKey: gateway.apiKey, maxRetries: 2, fetch });
    const body = message('Hi', { model: 'gated', metadata: { user_id: 'claude' } });
    const answer = await adopting('claude', () => client.messages.create(body));
    assert.equal(textOfMessage(answer), gatedText);
    assert.deepEqual([tries(), vendor.callsOf('claude').length], [2, 1]);
  });

  it('a retry after an answer that ended while its api process was dead gets that answer, and a later one does not', async () => {
    const body = held('Hi', { model: 'gated', user: 'unheard' });
    const doomed = await gateway.startApi();
    const first = attempt(0, body, { url: doomed.url });
    first.catch(() => undefined);
    await untilCalled('unheard');
    await doomed.kill();
    gateway.apis.splice(gateway.apis.indexOf(doomed), 1);
    release('unheard');
    const job = await eventually(async () => {
      const row = await records.db.selectFrom('jobs').select('id').orderBy('created_at', 'desc').executeTakeFirst();
      assert.equal(await records.redis.hget(jobKeys.state(row?.id ?? ''), 'unheard'), '1');
      return row?.id as string;
    });
    const retry = await attempt(1, body);
    assert.equal(retry.headers.get('idempotent-replayed'), 'true');
    assert.equal(jobIdOf(retry), job);
    assert.equal(await textOf(retry), gatedText);
    const another = attempt(2, body);
    await untilCalled('unheard', 2);
    release('unheard');
    assert.equal((await another).headers.get('idempotent-replayed'), null);
  });

  for (const isEarly of [true, false]) {
    const when = isEarly ? 'while it runs' : 'once it has ended';
    it(`a retry whose api process was killed gets the answer ${when}, though another process has shown the job to a watcher`, async () => {
      const user = `watched-${isEarly}`;
      const body = held('Hi', { model: 'gated', user });
      const states = (): Promise<string[]> => records.redis.keys('sluice:{a*}:job:*');
      const before = await states();
      const doomed = await gateway.startApi();
      const first = attempt(0, body, { url: doomed.url });
      first.catch(() => undefined);
      await untilCalled(user);
      const [state = ''] = (await states()).filter((key) => !before.includes(key));
      const id = state.split(':').at(-1);
      const watcher = new AbortController();
      gateway.fetch(`/v1/jobs/job_${id}/events`, { signal: watcher.signal }).catch(() => undefined);
      await eventually(async () => {
        assert.equal((await records.redis.hget(state, 'readers'))?.split(' ').length, 2);
      });
      watcher.abort();
      await doomed.kill();
      gateway.apis.splice(gateway.apis.indexOf(doomed), 1);
      if (!isEarly) {
        release(user);
        await eventually(async () => assert.notEqual(await records.redis.hget(state, 'terminal'), null));
      }
      const retry = await (isEarly ? adopting(user, () => attempt(1, body)) : attempt(1, body));
      assert.equal(retry.headers.get('idempotent-replayed'), 'true');
      assert.equal(jobIdOf(retry), id);
      assert.equal(await textOf(retry), gatedText);
      assert.equal(vendor.callsOf(user).length, 1);
    });
  }

  it('a retry after a broken connection gets the answer of the first try, on any instance', async () => {
    for (const [index, { url }] of gateway.apis.entries()) {
      const user = `broken-${index}`;
      const body = held('Hi', { model: 'gated', user });
      await broken(body);
      const retry = await adopting(user, () => attempt(1, body, { url }));
      assert.equal(retry.headers.get('idempotent-replayed'), 'true');
      assert.equal(await textOf(retry), gatedText);
      assert.deepEqual(
        vendor.callsOf(user).map(({ ended }) => ended),
        ['answered'],
      );
    }
  });

  it('a held answer whose caller left is cancelled if no retry comes, and so is one whose retry leaves, too', async () => {
    const slow = { sandbox: { first_token_ms: 60_000 } };
    await broken(held('Hi', { user: 'no-retry', ...slow }));
    assert.equal((await untilOver('no-retry'))[0]?.ended, 'client_closed');
    const body = held('Hi', { user: 'left-twice', ...slow });
    await broken(body);
    const controller = new AbortController();
    const adopted = await records.jobsWith('adopter');
    const retry = attempt(1, body, { signal: controller.signal });
    await records.untilMore('adopter', adopted);
    controller.abort();
    await assert.rejects(retry);
    assert.deepEqual(
      (await untilOver('left-twice')).map(({ ended }) => ended),
      ['client_closed'],
    );
    assert.deepEqual(await leftovers(gateway.redisUrl, { withinMs: withLostReadersMs }), []);
  });

  it('an api process that stops cancels what waits for a retry', async () => {
    const api = await gateway.startApi();
    const body = held('Hi', { user: 'stopped', sandbox: { first_token_ms: 60_000 } });
    await broken(body, { url: api.url });
    assert.equal(await api.stop(), 0);
    gateway.apis.splice(gateway.apis.indexOf(api), 1);
    assert.equal((await untilOver('stopped'))[0]?.ended, 'client_closed');
  });

  it('two equal first tries run twice, and a retry adopts neither while they are read', async () => {
    const body = held('Hi', { model: 'gated', user: 'equal' });
    const firsts = [attempt(0, body), attempt(0, body, { url: gateway.apis[1]?.url as string })];
    await untilCalled('equal', 2);
    const all = [...firsts, attempt(1, body), attempt(1, body)];
    await untilCalled('equal', 4);
    release('equal');
    const answers = await Promise.all(all);
    assert.equal(new Set(answers.map(jobIdOf)).size, 4);
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]));
  });

  it('a retry after an answer that was delivered is a new request', async () => {
    const body = held('WORDS:3@200', { user: 'delivered' });
    const first = await attempt(0, body);
    await first.text();
    const retry = await attempt(1, body);
    assert.notEqual(jobIdOf(retry), jobIdOf(first));
    assert.equal((await calls('delivered')).length, 2);
  });

  it('only one of two retries adopts a job', async () => {
    const body = held('Hi', { model: 'gated', user: 'contended' });
    await broken(body);
    const sent = gateway.apis.map(({ url }) => attempt(1, body, { url }));
    await untilCalled('contended', 2);
    release('contended');
    const retries = await Promise.all(sent);
    assert.deepEqual(retries.map(({ headers }) => headers.get('idempotent-replayed')).sort(), ['true', null].sort());
    assert.equal(vendor.callsOf('contended').length, 2);
  });

  it('a retry with another key, another body or another name of the request adopts nothing', async () => {
    const body = held('Hi', { model: 'gated', user: 'others' });
    await broken(body, { headers: { 'x-client-request-id': 'one' } });
    const authorization = `Bearer ${await makeApiKey(gateway)}`;
    const retries = [
      attempt(1, body, { headers: { authorization, 'x-client-request-id': 'one' } }),
      attempt(1, { ...body, temperature: 1 }, { headers: { 'x-client-request-id': 'one' } }),
      attempt(1, body, { headers: { 'x-client-request-id': 'two' } }),
      attempt(1, body),
    ];
    await untilCalled('others', 5);
    release('others');
    for (const { status, headers } of await Promise.all(retries)) {
      assert.deepEqual([status, headers.get('idempotent-replayed')], [200, null]);
    }
  });

  it('a retry of a failed job is a new request', async () => {
    const body = held('Hi', { user: 'fails', sandbox: { fault: { kind: 'error', status: 500 } } });
    for (const count of [0, 1, 2]) assert.equal((await attempt(count, body)).status, 500);
    assert.equal((await calls('fails')).length, 3);
  });

  it('a key or a request that ends with its connection is cancelled at once, and its retry is a new request', async () => {
    const key = await makeApiKey(gateway, { onDisconnect: 'cancel' });
    const optOuts = { key: { authorization: `Bearer ${key}` }, header: { 'x-sluice-on-disconnect': 'cancel' } };
    for (const [user, headers] of Object.entries(optOuts)) {
      const body = held('Hi', { user, sandbox: { first_token_ms: 60_000 } });
      const controller = new AbortController();
      const left = await records.jobsWith('left');
      const first = attempt(0, body, { headers, signal: controller.signal });
      await untilCalled(user);
      controller.abort();
      await assert.rejects(first);
      assert.equal((await untilOver(user))[0]?.ended, 'client_closed');
      assert.deepEqual(await records.jobsWith('left'), left);
      const retry = attempt(1, body, { headers, signal: AbortSignal.timeout(60_000) });
      await untilCalled(user, 2);
      retry.catch(() => undefined);
    }
  });

  it('a request that goes on without its caller is adopted by its retry, streamed, too', async () => {
    const headers = { 'x-sluice-on-disconnect': 'continue' };
    const body = streamed('Hi', { model: 'gated-whole', user: 'goes-on' });
    await broken(body, { headers });
    const retry = await adopting('goes-on', () => attempt(1, body, { headers }));
    assert.equal(retry.headers.get('idempotent-replayed'), 'true');
    assert.match(await retry.text(), /word20[\s\S]*\[DONE\]/);
    assert.equal(vendor.callsOf('goes-on').length, 1);
  });

  it('a retry with a revoked key adopts nothing', async () => {
    const key = await makeApiKey(gateway);
    const headers = { authorization: `Bearer ${key}` };
    const body = held('Hi', { model: 'gated', user: 'revoked' });
    await broken(body, { headers });
    await revokeKey(gateway, key);
    await assertErrorAnswer(await attempt(1, body, { headers }), 401, 'invalid_api_key');
    release('revoked');
  });

  it('only requests of libraries that count their retries are remembered, and no longer than they can be adopted', async () => {
    const remembered = (): Promise<string[]> => records.redis.keys('sluice:{m*}:retry:*');
    await eventually(async () => {
      for (const key of await remembered()) assert.ok((await records.redis.pttl(key)) <= 30_000, `${key} stays`);
    });
    const before = await remembered();
    await (await records.post(held('WORDS:2@200'))).text();
    await (await records.post(held('WORDS:2@200'), { 'x-stainless-retry-count': 'once' })).text();
    await attempt(0, held('Hi', { sandbox: { fault: { kind: 'error', status: 400 } } }));
    await eventually(async () => {
      const added = (await remembered()).filter((key) => !before.includes(key));
      assert.deepEqual(added, []);
    });
  });
});
