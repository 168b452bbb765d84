import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import type OpenAI from 'openai';
import { TestGateway } from '../../support/gateway.ts';
import { makeApiKey } from '../../support/make-api-key.ts';
import { type FixtureVendor, sendJson, startFixtureVendor } from '../../vendors/contracts/fixture-vendor.ts';
import { completion, errorBody, usage } from '../../vendors/recorded/recorded-openai.ts';

/** What no vendor can answer: a prompt that each of them fails on, and one that is about something which none of them has. */
const poison = 'a prompt that breaks servers';
const missing = 'a prompt about a file that is gone';
const fine = JSON.stringify({
  ...completion,
  choices: [{ index: 0, message: { role: 'assistant', content: 'fine' }, logprobs: null, finish_reason: 'stop' }],
  usage,
});

/** Models whose first route fails: each needs a retry. */
const models = ['one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight'];

/** As OpenAI refuses a request of more tokens than the account has in a minute, with the limits that it tells. */
const tooLarge = 'a prompt of too many tokens';
const tooLargeError = errorBody(
  'Request too large for m in organization org-1 on tokens per min (TPM): Limit 30000, Requested 41022.',
  'rate_limit_exceeded',
);
const limits = { 'x-ratelimit-limit-requests': '500', 'x-ratelimit-limit-tokens': '30000' };

let gateway: TestGateway;
let vendors: { only: FixtureVendor; failing: FixtureVendor; good: FixtureVendor };
let failing: OpenAI;
let other: OpenAI;

before(async () => {
  const [only, broken, good] = await Promise.all([startFixtureVendor(), startFixtureVendor(), startFixtureVendor()]);
  vendors = { only, failing: broken, good };
  for (const vendor of [only, good]) {
    vendor.answer((response, { body }) => {
      if (body.includes(poison)) sendJson(response, 500, errorBody('in trouble', 'server_error'));
      else if (body.includes(missing)) sendJson(response, 404, errorBody('no such file', 'not_found'));
      else if (body.includes(tooLarge)) {
        for (const [name, value] of Object.entries(limits)) response.setHeader(name, value);
        sendJson(response, 429, tooLargeError);
      } else sendJson(response, 200, fine);
    });
  }
  broken.answer((response) => sendJson(response, 500, errorBody('in trouble', 'server_error')));
  gateway = await TestGateway.start({
    configuration: {
      vendors: Object.fromEntries(
        Object.entries(vendors).map(([name, { baseUrl }]) => [
          name,
          { like: 'openai', base_url: baseUrl, api_key: 'k' },
        ]),
      ),
      models: {
        single: { capability: 'chat', routes: [{ vendor: 'only', model: 'm' }] },
        limited: { capability: 'chat', routes: [{ vendor: 'only', model: 'limited' }] },
        double: { capability: 'chat', routes: ['only', 'good'].map((vendor) => ({ vendor, model: 'double' })) },
        ...Object.fromEntries(
          models.map((model) => [
            model,
            { capability: 'chat', routes: ['failing', 'good'].map((vendor) => ({ vendor, model })) },
          ]),
        ),
      },
    },
  });
});

beforeEach(async () => {
  failing = gateway.client({ maxRetries: 0, apiKey: await makeApiKey(gateway, { accountId: 'failing' }) });
  other = gateway.client({ maxRetries: 0, apiKey: await makeApiKey(gateway, { accountId: 'other' }) });
});

after(async () => {
  await gateway?.stop();
  await Promise.all(Object.values(vendors ?? {}).map((vendor) => vendor.close()));
});

async function ask(client: OpenAI, model: string, content = 'hi'): Promise<string | null | undefined> {
  const answer = await client.chat.completions.create({ model, messages: [{ role: 'user', content }] });
  return answer.choices[0]?.message.content;
}

/** Many requests that all fail. */
async function failMany(model: string, content: string): Promise<void> {
  const asked = Array.from({ length: 60 }, () => ask(failing, model, content));
  for (const { status } of await Promise.allSettled(asked)) assert.equal(status, 'rejected');
}

test("a model's only route is not paused for accounts whose requests have not failed", async () => {
  await failMany('single', poison);
  await assert.rejects(ask(failing, 'single'), { status: 503 }, 'it is paused for the one whose requests all failed');
  assert.equal(await ask(other, 'single'), 'fine');
});

test('an account whose requests all fail leaves retries to others', async () => {
  await failMany('double', missing);
  // At once: a retry is regained each second.
  const answers = await Promise.all(models.map((model) => ask(other, model)));
  assert.deepEqual(
    answers,
    models.map(() => 'fine'),
  );
});

test("a request that alone exceeds its vendor's limit is refused at once, and does not pause the model for others", async () => {
  const calls = () => vendors.only.requests.filter(({ body }) => body.includes(tooLarge)).length;
  await assert.rejects(ask(failing, 'limited', tooLarge), { status: 413, code: 'request_too_large' });
  assert.equal(calls(), 1);
  const answers = await Promise.all(Array.from({ length: 40 }, () => ask(other, 'limited')));
  assert.deepEqual(new Set(answers), new Set(['fine']));
});
