import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { assertAnthropicError } from '../../support/anthropic-errors.ts';
import { held } from '../../support/chat-requests.ts';
import { assertErrorAnswer } from '../../support/error-answers.ts';
import { eventually } from '../../support/eventually.ts';
import { TestGateway } from '../../support/gateway.ts';
import { makeApiKey } from '../../support/make-api-key.ts';
import { RawRequest } from '../../support/raw-request.ts';
import { vendorCalls } from '../../support/vendor-journal.ts';

/** What an answer's headers say of the limits: limit and remaining of requests, then of tokens. */
function limitsOf({ headers }: Response): (string | null)[] {
  return ['requests', 'tokens'].flatMap((kind) =>
    ['limit', 'remaining'].map((what) => headers.get(`x-ratelimit-${what}-${kind}`)),
  );
}

/** A model of short answers: Claude Code asks for 32,000 tokens of each that it does not know. */
const small = 'a-small-model';
const ofSandbox = {
  ...{ capability: 'chat' as const, max_output_tokens: 4096, prices: { input: 1, output: 1 } },
  routes: [{ vendor: 'sandbox', model: 'sandbox-chat' }],
};

describe('rate limit headers of a 429', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await TestGateway.start({ configuration: { models: { [small]: ofSandbox } } });
  });
  after(() => gateway?.stop());

  const ask = (apiKey: string, body: object = held('Hi')): Promise<Response> =>
    gateway.fetch('/v1/chat/completions', {
      method: 'POST',
      headers: { authorization: `Bearer ${apiKey}` },
      body: JSON.stringify(body),
    });

  it('a 429 shows the per-minute limits of the key and when they reset', async () => {
    const apiKey = await makeApiKey(gateway, { rpm: 2, tpm: 100_000 });
    for (const left of ['1', '0']) assert.deepEqual(limitsOf(await ask(apiKey)).slice(0, 2), ['2', left]);
    const refused = await ask(apiKey);
    await assertErrorAnswer(refused, 429, 'rate_limit_exceeded');
    const [requests, leftRequests, tokens, leftTokens] = limitsOf(refused);
    assert.deepEqual([requests, leftRequests, tokens], ['2', '0', '100000']);
    assert.ok(Number(leftTokens) > 90_000 && Number(leftTokens) <= 100_000, `${leftTokens} tokens`);
    assert.match(refused.headers.get('x-ratelimit-reset-requests') ?? '', /^(5\d\.\d+s|1m[\d.]+s)$/);
    assert.match(refused.headers.get('x-ratelimit-reset-tokens') ?? '', /^[\d.]+m?s$/);
  });

  it("Anthropic's clients find the limits under the names of its API, answered and refused", async () => {
    const apiKey = await makeApiKey(gateway, { rpm: 1, tpm: 100_000 });
    const body = JSON.stringify({ model: 'sandbox-chat', max_tokens: 10, messages: [{ role: 'user', content: 'Hi' }] });
    const say = () =>
      gateway.fetch('/v1/messages', { method: 'POST', headers: { authorization: `Bearer ${apiKey}` }, body });
    for (const status of [200, 429]) {
      const answer = await say();
      assert.equal(answer.status, status);
      const told = (name: string) => answer.headers.get(`anthropic-ratelimit-${name}`) ?? '';
      assert.deepEqual(
        [told('requests-limit'), told('requests-remaining'), told('tokens-limit')],
        ['1', '0', '100000'],
      );
      for (const kind of ['requests', 'tokens']) {
        const resetMs = Date.parse(told(`${kind}-reset`)) - Date.now();
        assert.ok(resetMs > -1000 && resetMs < 61_000, told(`${kind}-reset`));
      }
      assert.ok(Date.parse(told('requests-reset')) - Date.now() > 50_000, told('requests-reset'));
    }
    assert.equal((await ask(apiKey)).headers.get('anthropic-ratelimit-requests-limit'), null);
  });

  it('the rate limit headers show the limit of the model when that one runs out first', async () => {
    const apiKey = await makeApiKey(gateway, { rpm: 600, modelLimits: { 'sandbox-chat': { rpm: 1 } } });
    assert.deepEqual(limitsOf(await ask(apiKey)), ['600', '599', null, null]);
    assert.deepEqual(limitsOf(await ask(apiKey)), ['1', '0', null, null]);
  });

  it('a 429 shows the concurrency limit when there are too many unfinished requests', async () => {
    const apiKey = await makeApiKey(gateway, { concurrency: 1 });
    const running = ask(apiKey, held('WORDS:60@20', { user: 'unfinished' }));
    await eventually(async () => assert.equal((await vendorCalls(gateway, 'unfinished')).length, 1));
    const refused = await ask(apiKey);
    assert.equal(refused.status, 429);
    assert.deepEqual(limitsOf(refused), ['1', '0', null, null]);
    await running;
  });

  it('a request for several choices counts the tokens that all of them may have', async () => {
    const apiKey = await makeApiKey(gateway, { tpm: 10_000 });
    const answer = await ask(apiKey, held('Hi', { n: 4, max_completion_tokens: 1000 }));
    const [, , , left] = limitsOf(answer);
    assert.ok(Number(left) > 5000 && Number(left) <= 6000, `${left} tokens are left`);
    const completion = { model: 'sandbox-chat', prompt: ['One', 'Two', 'Three'], max_tokens: 1000 };
    const headers = { authorization: `Bearer ${await makeApiKey(gateway, { tpm: 10_000 })}` };
    const completed = await gateway.fetch('/v1/completions', {
      method: 'POST',
      headers,
      body: JSON.stringify(completion),
    });
    const [, , , rest] = limitsOf(completed);
    assert.ok(Number(rest) > 6000 && Number(rest) <= 7000, `${rest} tokens are left`);
  });

  it("a message counts no more tokens than its model answers at most, in the key's rate and in a quote", async () => {
    const headers = { authorization: `Bearer ${await makeApiKey(gateway, { tpm: 10_000 })}` };
    const asked = { model: small, max_tokens: 32_000, messages: [{ role: 'user', content: 'Hi' }] };
    const send = (body: object, prefer = ''): Promise<Response> => {
      const own = { ...headers, ...(prefer && { prefer }) };
      return gateway.fetch('/v1/messages', { method: 'POST', headers: own, body: JSON.stringify(body) });
    };
    const quote = (await (await send(asked, 'quote')).json()) as { max_output_tokens: number; max_cost: number };
    assert.equal(quote.max_output_tokens, 4096);
    assert.ok(quote.max_cost < 0.005, `${quote.max_cost} dollars`);
    const answer = await send(asked);
    assert.equal(answer.status, 200);
    const left = Number(answer.headers.get('anthropic-ratelimit-tokens-remaining'));
    assert.ok(left > 5500 && left <= 10_000 - 4096, `${left} tokens are left`);
    await assertAnthropicError(await send({ ...asked, model: 'sandbox-chat' }), 429, 'rate_limit_error');
  });

  it('a 429 to a large body shows the limits before the body is read', async () => {
    const apiKey = await makeApiKey(gateway, { rpm: 1 });
    await ask(apiKey);
    const headers = { 'content-length': String(1024 * 1024) };
    const { status, head } = await (await RawRequest.open(gateway.url, { key: apiKey, headers })).answer();
    assert.equal(status, 429);
    assert.match(head, /^x-ratelimit-limit-requests: 1\r\nx-ratelimit-remaining-requests: 0$/m);
  });

  it('requests refused together get different Retry-After times, none of them too early', async () => {
    const apiKey = await makeApiKey(gateway, { rpm: 2 });
    for (let count = 0; count < 2; count++) await ask(apiKey);
    const refused = await Promise.all(Array.from({ length: 12 }, () => ask(apiKey)));
    const waits = await Promise.all(
      refused.map(async (answer) => {
        const { message } = await assertErrorAnswer(answer, 429, 'rate_limit_exceeded');
        const least = Number(/try again in ([\d.]+) ?s/i.exec(message)?.[1]) * 1000;
        const wait = Number(answer.headers.get('retry-after-ms'));
        assert.ok(wait >= least && wait < 60_000, `${wait} ms where ${least} ms are needed`);
        assert.equal(answer.headers.get('retry-after'), String(Math.ceil(wait / 1000)));
        return Math.round(wait - least);
      }),
    );
    assert.ok(Math.max(...waits) - Math.min(...waits) > 100, `all within 0.1 s: ${waits}`);
  });
});
