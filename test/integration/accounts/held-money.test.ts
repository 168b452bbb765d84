import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { held } from '../../support/chat-requests.ts';
import { assertErrorAnswer } from '../../support/error-answers.ts';
import { eventually } from '../../support/eventually.ts';
import { TestGateway } from '../../support/gateway.ts';
import { makeLimitedAccount } from '../../support/limited-account.ts';
import { makeApiKey } from '../../support/make-api-key.ts';
import { vendorCalls } from '../../support/vendor-journal.ts';

/** What one may cost is much more than what it does cost. */
const body = (user: string, more: object = {}) => held('WORDS:20@10', { user, max_completion_tokens: 4000, ...more });

describe('money that unfinished requests hold', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await TestGateway.start();
  });
  after(() => gateway?.stop());

  const ask = (key: string, request: object, headers: Record<string, string> = {}): Promise<Response> =>
    gateway.fetch('/v1/chat/completions', {
      method: 'POST',
      body: JSON.stringify(request),
      headers: { authorization: `Bearer ${key}`, ...headers },
    });

  /** Enough for one request at a time, in nano-dollars. */
  async function enoughForOne(): Promise<number> {
    const quote = await ask(gateway.apiKey, body('priced'), { prefer: 'quote' });
    return Math.round(((await quote.json()) as { max_cost: number }).max_cost * 1.5e9);
  }

  const keys: readonly (readonly [what: string, makeKey: () => Promise<string>])[] = [
    ['balance', async () => (await makeLimitedAccount(gateway, { credit: await enoughForOne() })).key],
    ['budget', async () => await makeApiKey(gateway, { budget: { amount: await enoughForOne(), period: 'month' } })],
  ];

  for (const [what, makeKey] of keys) {
    it(`requests that follow each other's answers at once are admitted, though the ${what} is enough for one only`, async () => {
      const key = await makeKey();
      const quick = { ...body('in turn'), messages: [{ role: 'user', content: 'WORDS:1@0' }] };
      for (let turn = 1; turn <= 10; turn++) {
        const answer = await ask(key, quick);
        const text = await answer.text();
        assert.equal(answer.status, 200, `request ${turn}: ${text}`);
      }
    });

    it(`OpenAI's client gets an answer once another request has released what it holds of the ${what}`, async () => {
      const key = await makeKey();
      const first = ask(key, body(`first-${what}`));
      await eventually(async () => assert.equal((await vendorCalls(gateway, `first-${what}`)).length, 1));
      const refused = await ask(key, body('refused'));
      assert.equal(refused.headers.get('x-should-retry'), null);
      assert.ok(Number(refused.headers.get('retry-after')) >= 1);
      const { message } = await assertErrorAnswer(refused, 429, 'insufficient_quota');
      assert.match(
        message,
        /\$[\d.]+ remains beside \$[\d.]+ that unfinished requests hold\. Retry once they have ended/,
      );
      const tooMuch = await ask(key, body('too much', { n: 4 }));
      assert.equal(tooMuch.headers.get('x-should-retry'), 'false');
      await assertErrorAnswer(tooMuch, 429, 'insufficient_quota');
      const client = gateway.client({ apiKey: key, maxRetries: 4 });
      const { choices } = await client.chat.completions.create(body(`second-${what}`));
      assert.equal(choices[0]?.message.content?.split(' ').length, 20);
      assert.equal((await first).status, 200);
      assert.equal((await vendorCalls(gateway, 'refused')).length, 0);
    });
  }
});
