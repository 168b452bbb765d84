import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { assertErrorAnswer } from '../../support/error-answers.ts';
import { eventually } from '../../support/eventually.ts';
import { gatedText } from '../../support/gated-vendor.ts';
import { jobIdOf } from '../../support/job-records.ts';
import { makeLimitedAccount } from '../../support/limited-account.ts';
import { flightOf, heldText, SharedRequests } from '../../support/shared-requests.ts';

/** More than is read of a request before its caller's funds are looked at. */
const long = 'word '.repeat(20_000);

const bodyOf = (user: string): object => ({
  ...{ model: 'gated', user, max_tokens: 100 },
  messages: [{ role: 'user', content: long }],
});

describe('requests over 64 KiB that repeat one which holds all that their caller may spend', () => {
  let shared: SharedRequests;
  before(async () => {
    shared = await SharedRequests.start();
  });
  after(() => shared?.stop());

  /** What such a request holds, in nano-dollars. */
  async function costOf(user: string): Promise<number> {
    const quote = await shared.ask(bodyOf(user), { headers: { prefer: 'quote' } });
    return Math.round(((await quote.json()) as { max_cost: number }).max_cost * 1e9);
  }

  /** Keys of callers who can pay for exactly one such request at a time, or send one in a minute. */
  const callers: readonly (readonly [what: string, makeKey: (user: string) => Promise<{ readonly key: string }>])[] = [
    ['balance', async (user) => await makeLimitedAccount(shared.gateway, { credit: await costOf(user) })],
    ['limit per minute', () => makeLimitedAccount(shared.gateway, { credit: 1e12, rpm: 1 })],
  ];

  for (const [what, makeKey] of callers) {
    it(`the retry of a client library gets the answer of the first try when that has used up the ${what}`, async () => {
      const user = `retried-${what}`;
      const { key } = await makeKey(user);
      const own = { authorization: `Bearer ${key}`, 'x-sluice-single-flight': '0' };
      const attempt = (count: number, signal?: AbortSignal): Promise<Response> =>
        shared.ask(bodyOf(user), {
          headers: { ...own, 'x-stainless-retry-count': String(count) },
          ...(signal && { signal }),
        });
      const controller = new AbortController();
      const first = attempt(0, controller.signal);
      await shared.untilCalled(user);
      // A worker may be faster than the reply to the admission.
      await new Promise((resolve) => setTimeout(resolve, 200));
      const { records } = shared;
      const left = await records.jobsWith('left');
      controller.abort();
      await assert.rejects(first);
      await records.untilMore('left', left);
      const adopted = await records.jobsWith('adopter');
      const retry = attempt(1);
      await records.untilMore('adopter', adopted);
      shared.release(user);
      const answer = await retry;
      assert.equal(answer.status, 200, answer.ok ? '' : await answer.clone().text());
      assert.equal(answer.headers.get('idempotent-replayed'), 'true');
      assert.equal(await heldText(answer), gatedText);
      assert.equal(shared.vendor.callsOf(user).length, 1);
    });
  }

  it('an identical request joins one that holds the whole balance, and another one is refused', async () => {
    const user = 'joined';
    const { key } = await makeLimitedAccount(shared.gateway, { credit: await costOf(user) });
    const headers = { authorization: `Bearer ${key}` };
    // A key that an api has not met is read from the database, and meanwhile the whole body arrives.
    const url = shared.gateway.apis[1]?.url as string;
    assert.equal((await shared.gateway.fetch('/v1/models', { headers, url })).status, 200);
    const first = shared.ask(bodyOf(user), { headers });
    await shared.untilCalled(user);
    const joining = shared.ask(bodyOf(user), { headers, api: 1 });
    await assertErrorAnswer(await shared.ask(bodyOf('another'), { headers }), 429, 'insufficient_quota');
    await eventually(async () => assert.equal((await shared.records.jobsWith('sharer:', 2)).length, 1));
    shared.release(user);
    const joined = await joining;
    assert.equal(joined.status, 200, joined.ok ? '' : await joined.clone().text());
    assert.deepEqual([flightOf(joined), jobIdOf(joined)], ['joined', jobIdOf(await first)]);
    assert.equal(shared.vendor.callsOf(user).length, 1);
  });
});
