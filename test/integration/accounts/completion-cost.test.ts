import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { readAccountMoney } from '../../../shared/accounts/account-money.ts';
import { eventually } from '../../support/eventually.ts';
import { JobRecords, jobIdOf } from '../../support/job-records.ts';
import { makeLimitedAccount } from '../../support/limited-account.ts';
import { readSse } from '../../support/sse-events.ts';
import { type FixtureVendor, sendJson, startFixtureVendor } from '../../vendors/contracts/fixture-vendor.ts';

const path = '/v1/completions';
/** In nano-dollars for a token. */
const [inputPrice, outputPrice, cachedPrice] = [10_000, 10_000, 1000];
/** What a vendor counts for a chat of one letter: its role, and what stands before the answer, too. */
const tokensOfChat = 8;
const cachedOfChat = 2;

describe('what legacy completions cost', () => {
  let records: JobRecords;
  let vendor: FixtureVendor;
  before(async () => {
    vendor = await startFixtureVendor();
    vendor.answer((response, { url = '' }) => {
      const details = { prompt_tokens_details: { cached_tokens: cachedOfChat } };
      const usage = { prompt_tokens: tokensOfChat, completion_tokens: 1, total_tokens: tokensOfChat + 1, ...details };
      const said = url.endsWith('/chat/completions') ? { message: { role: 'assistant', content: 'b' } } : { text: 'b' };
      const choices = [{ index: 0, logprobs: null, finish_reason: 'stop', ...said }];
      sendJson(response, 200, JSON.stringify({ id: 'theirs', object: 'any', created: 1, choices, usage }));
    });
    const model = { capability: 'chat', prices: { input: 10, output: 10 } } as const;
    records = await JobRecords.start({
      configuration: {
        vendors: { pen: { like: 'openai', base_url: vendor.baseUrl, api_keys: ['any'] } },
        models: {
          talker: { ...model, routes: [{ vendor: 'pen', model: 'talker' }] },
          long: {
            ...model,
            prices: {
              ...model.prices,
              cached_input: 1,
              above: [{ tokens: 100, input: 20, cached_input: 2, output: 20 }],
            },
            routes: [{ vendor: 'pen', model: 'long' }],
          },
          writer: { ...model, legacy_completions: true, routes: [{ vendor: 'pen', model: 'writer' }] },
        },
      },
    });
  });
  beforeEach(() => {
    vendor.requests.length = 0;
  });
  after(async () => {
    await records.stop();
    await vendor.close();
  });

  async function account(credit: number) {
    const { id, key } = await makeLimitedAccount(records.gateway, { credit });
    const money = async () => (await readAccountMoney(records.redis, id)) ?? assert.fail();
    return { headers: { authorization: `Bearer ${key}` }, money };
  }

  for (const [model, limit] of [
    ['talker', 'max_completion_tokens'],
    ['writer', 'max_tokens'],
  ] as const) {
    it(`a completion with ${model} without a limit has one of 16 tokens, however much its account can pay for`, async () => {
      // Pays for 1,000 tokens, which is less than the most that the model may have.
      for (const credit of [1000 * outputPrice, 1_000_000 * outputPrice]) {
        const { headers } = await account(credit);
        const response = await records.post({ model, prompt: 'a' }, headers, { path });
        assert.equal(response.status, 200, await response.text());
        const { body } = vendor.requests.at(-1) ?? assert.fail();
        assert.equal(JSON.parse(body)[limit], 16, body);
      }
    });

    it(`a completion with ${model} without a limit is quoted, and held, with 16 tokens for each choice`, async () => {
      const { headers } = await account(1000 * outputPrice);
      const quote = await records.post({ model, prompt: 'a', n: 2 }, { ...headers, prefer: 'quote' }, { path });
      const { max_output_tokens: tokens, max_cost: dollars } = (await quote.json()) as Record<string, number>;
      assert.equal(tokens, 16);
      const most = (200 * inputPrice + 32 * outputPrice) / 1e9;
      assert.ok(dollars !== undefined && dollars <= most, `${dollars} is more than ${most}`);
    });
  }

  it('a completion of many short prompts is charged all tokens of the chats that it becomes', async () => {
    const { headers, money } = await account(1_000_000 * inputPrice);
    const prompt = Array.from({ length: 100 }, () => 'a');
    const response = await records.post({ model: 'talker', prompt, max_tokens: 1 }, headers, { path });
    assert.equal(response.status, 200, await response.text());
    const { cost } = await records.ended(jobIdOf(response));
    const expected = prompt.length * (tokensOfChat * inputPrice + outputPrice);
    assert.equal(cost, expected);
    await eventually(async () => assert.deepEqual(((m) => [m.held, m.charged])(await money()), [0, expected]));
  });

  it('a completion of many short prompts has the price of short requests, which its vendor asks for each of them', async () => {
    const prompt = Array.from({ length: 20 }, () => 'a');
    const response = await records.post({ model: 'long', prompt, max_tokens: 1 }, {}, { path });
    assert.equal(response.status, 200, await response.text());
    const { cost, saved, input_tokens: input } = await records.ended(jobIdOf(response));
    assert.equal(input, 20 * tokensOfChat, 'together they are long');
    const expected = 20 * cachedOfChat * (inputPrice - cachedPrice);
    assert.deepEqual([cost, saved], [20 * (tokensOfChat * inputPrice + outputPrice) - expected, expected]);
  });

  it('a completion with echo that is cut is charged what its prompts have said, whatever a prompt without a call is', async () => {
    const filler = 'lorem ipsum dolor sit amet '.repeat(400);
    const prompt = [...Array.from({ length: 4 }, () => 'WORDS:400@50'), filler];
    const asked = { model: 'sandbox-chat', prompt, echo: true, max_tokens: 500, stream: true };
    const response = await records.post(asked, {}, { path });
    const said: string[] = [];
    for await (const { data } of readSse(response)) {
      said.push(data);
      if (said.length === 200) break;
    }
    const words = said.join('').match(/word\d+/g)?.length ?? 0;
    const { outcome, output_tokens: output } = await records.ended(jobIdOf(response));
    assert.equal(outcome, 'cancelled');
    assert.ok(words > 150 && (output as number) >= words, `${output} of ${words}`);
  });
});
