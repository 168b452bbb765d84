import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { assertErrorAnswer } from '../../support/error-answers.ts';
import { eventually } from '../../support/eventually.ts';
import { JobRecords, jobIdOf, type ReadJob } from '../../support/job-records.ts';
import { makeLimitedAccount } from '../../support/limited-account.ts';
import { readSse } from '../../support/sse-events.ts';
import {
  beginStream,
  type FixtureVendor,
  sendJson,
  sendStream,
  startFixtureVendor,
} from '../../vendors/contracts/fixture-vendor.ts';

/** Nano-dollars of `sonar`: for a token, and for a request by its search context. */
const token = 1000;
const fees = { low: 5_000_000, medium: 8_000_000, high: 12_000_000 };
const tokens = { prompt_tokens: 11, completion_tokens: 62, total_tokens: 73 };

const messages = [{ role: 'user', content: 'Who made Ruby?' }];
const chat = { model: 'sonar', messages, max_tokens: 100 };
const searching = (size: string) => ({ web_search_options: { search_context_size: size } });

/** What the vendor tells of a request beside its tokens. */
interface Told {
  readonly search_context_size?: unknown;
  readonly cost?: unknown;
}
const asRecorded: Told = {
  search_context_size: 'low',
  cost: { input_tokens_cost: 0.00001, output_tokens_cost: 0.00006, request_cost: 0.005, total_cost: 0.00507 },
};

const envelope = { id: 'c', created: 1, model: 'sonar' };
const begin = { role: 'assistant', content: '' };
const said = (text: string) =>
  `data: ${JSON.stringify({
    ...envelope,
    object: 'chat.completion.chunk',
    choices: [{ index: 0, delta: { ...begin, content: text }, finish_reason: null }],
  })}\n\n`;

describe('request fees and image kinds', () => {
  let vendor: FixtureVendor;
  let records: JobRecords;
  before(async () => {
    vendor = await startFixtureVendor();
    const perplexity = { base_url: vendor.baseUrl, api_key: 'none' };
    const painter = {
      capability: 'image' as const,
      prices: { image: 0.001, image_kinds: { '1792x1024': 0.002, hd: 0.003, '1792x1024 hd': 0.004 } },
      routes: [{ vendor: 'sandbox', model: 'sandbox-image' }],
    };
    const { image: _, ...kinds } = painter.prices;
    const sketcher = { ...painter, prices: kinds };
    records = await JobRecords.start({ configuration: { vendors: { perplexity }, models: { painter, sketcher } } });
  });
  after(async () => {
    await records?.stop();
    await vendor?.close();
  });

  /** From now on the vendor answers as recorded, streams where it is asked for one, and tells this. */
  function tell(told: Told): void {
    const usage = { ...tokens, ...told };
    vendor.answer((response, { body }) => {
      const finish = { index: 0, finish_reason: 'stop' };
      if ((JSON.parse(body) as { stream?: boolean }).stream === true) {
        const last = { ...envelope, choices: [{ ...finish, delta: {} }], usage };
        return sendStream(response, [said('Matz'), `data: ${JSON.stringify(last)}\n\n`]);
      }
      const message = { role: 'assistant', content: 'Matz' };
      sendJson(response, 200, JSON.stringify({ ...envelope, choices: [{ ...finish, message }], usage }));
    });
  }

  /** What a request has cost by the database: here, and there. */
  async function costs(body: object, path?: string): Promise<[cost: number | null, vendorCost: number | null]> {
    const response = await records.post(body, {}, path === undefined ? {} : { path });
    const text = await response.text();
    assert.equal(response.status, 200, text);
    const { cost, vendor_cost: vendorCost } = await records.ended(jobIdOf(response));
    return [cost, vendorCost];
  }

  test('a request fee is charged beside the tokens, held and streamed, and the cost stated by the vendor is recorded', async () => {
    tell(asRecorded);
    const cost = 73 * token + fees.low;
    assert.deepEqual(await costs(chat), [cost, 5_070_000]);
    assert.deepEqual(await costs({ ...chat, stream: true }), [cost, 5_070_000]);
    assert.equal((await records.post(chat)).headers.get('x-sluice-cost'), '0.005073');
  });

  test('a request fee follows the requested search context on every endpoint, unless the vendor reports another', async () => {
    tell({});
    const input = { model: 'sonar', input: 'Who made Ruby?', max_output_tokens: 100 };
    const asked: readonly (readonly [path: string, body: object])[] = [
      ['/v1/chat/completions', chat],
      ['/v1/messages', chat],
      ['/v1/responses', input],
      ['/v1/completions', { model: 'sonar', prompt: 'Who made Ruby?' }],
    ];
    for (const [path, body] of asked) {
      for (const size of ['low', 'medium', 'high'] as const) {
        const [cost] = await costs({ ...body, ...searching(size) }, path);
        assert.equal(cost, 73 * token + fees[size], `${path} ${size}`);
      }
    }
    tell({ search_context_size: 'medium' });
    assert.equal((await costs({ ...chat, ...searching('high') }))[0], 73 * token + fees.medium);
  });

  test('a completion is charged one request fee per prompt, and a token count none', async () => {
    tell(asRecorded);
    const two = { model: 'sonar', prompt: ['Who made Ruby?', 'When?'], ...searching('low') };
    assert.deepEqual(await costs(two, '/v1/completions'), [2 * (73 * token + fees.low), 2 * 5_070_000]);
    const { max_tokens: _, ...counted } = chat;
    const response = await records.post(counted, {}, { path: '/v1/messages/count_tokens' });
    assert.equal(response.status, 200, await response.text());
    const { cost } = await records.ended(jobIdOf(response));
    assert.equal(cost, 0);
  });

  test('a stream whose client disconnects is charged the request fee of the requested search context', async () => {
    vendor.answer((response) => {
      beginStream(response);
      response.write(said('Matz'));
    });
    const leave = new AbortController();
    const body = { ...chat, ...searching('high'), stream: true };
    const response = await records.post(body, {}, { signal: leave.signal });
    for await (const _ of readSse(response)) break;
    leave.abort();
    const { outcome, cost, vendor_cost: vendorCost, usage } = await records.ended(jobIdOf(response));
    const { total_tokens: total } = JSON.parse(usage ?? '{}') as { total_tokens: number };
    assert.deepEqual([outcome, cost, vendorCost], ['cancelled', total * token + fees.high, null]);
  });

  test('a request fee is held: a smaller balance gets 429 before the vendor call, and no account pays beyond its balance', async () => {
    tell({ search_context_size: 'high', cost: { total_cost: 0.0121 } });
    const { key: poor } = await makeLimitedAccount(records.gateway, { credit: 11_900_000 });
    const asking = { ...chat, max_tokens: 10, ...searching('high') };
    const before = vendor.requests.length;
    const refused = await records.post(asking, { authorization: `Bearer ${poor}` });
    await assertErrorAnswer(refused, 429, 'insufficient_quota');
    assert.equal(vendor.requests.length, before);
    const { key } = await makeLimitedAccount(records.gateway, { credit: 12_900_000 });
    const paid = await records.post(asking, { authorization: `Bearer ${key}` });
    assert.equal(paid.status, 200, await paid.text());
    assert.equal((await records.ended(jobIdOf(paid))).cost, 73 * token + fees.high);
    // What its vendor takes for a larger search context than was asked for is not charged to who may not pay for it.
    const { key: asksForLess } = await makeLimitedAccount(records.gateway, { credit: 5_900_000 });
    const plain = await records.post({ ...chat, max_tokens: 10 }, { authorization: `Bearer ${asksForLess}` });
    assert.equal(plain.status, 200, await plain.text());
    const { cost } = await records.ended(jobIdOf(plain));
    assert.ok(cost !== null && cost <= 5_900_000, String(cost));
  });

  test('a limited account may set a search context, and gets 403 for any other kind of search', async () => {
    tell(asRecorded);
    const { key } = await makeLimitedAccount(records.gateway, { credit: 1_000_000_000 });
    const ask = (options: object, model = 'sonar') =>
      records.post({ ...chat, model, web_search_options: options }, { authorization: `Bearer ${key}` });
    const place = { type: 'approximate', approximate: { country: 'FR' } };
    const covered = await ask({ search_context_size: 'high', user_location: place });
    assert.equal(covered.status, 200, await covered.text());
    const uncovered: readonly (readonly [options: object, model?: string])[] = [
      [{ search_context_size: 'low', search_type: 'pro' }],
      [{ search_context_size: 'low' }, 'sandbox-chat'],
    ];
    for (const [options, model] of uncovered) {
      const { param } = await assertErrorAnswer(await ask(options, model), 403, 'permission_denied');
      assert.equal(param, 'web_search_options');
    }
    // What it costs beside its tokens no request bounds.
    const research = await records.post({ ...chat, model: 'sonar-deep-research' }, { authorization: `Bearer ${key}` });
    const { param } = await assertErrorAnswer(research, 403, 'permission_denied');
    assert.equal(param, 'model');
  });

  test('an image costs the price of its size and quality, also for a limited account', async () => {
    const { key } = await makeLimitedAccount(records.gateway, { credit: 100_000_000 });
    const asked: readonly (readonly [more: object, cost: number, model?: string])[] = [
      [{}, 1_000_000],
      [{ size: '256x256', quality: 'standard' }, 1_000_000],
      [{ size: '1792x1024' }, 2_000_000],
      [{ quality: 'hd', size: '512x512', n: 2 }, 6_000_000],
      [{ size: '1792x1024', quality: 'hd' }, 4_000_000],
      // Without a price for all other images these cost the dearest.
      [{ size: '256x256' }, 4_000_000, 'sketcher'],
      [{ size: '1792x1024' }, 2_000_000, 'sketcher'],
    ];
    for (const [more, cost, model = 'painter'] of asked) {
      const body = { model, prompt: 'A sea otter', ...more };
      const headers = { authorization: `Bearer ${key}` };
      const response = await records.post(body, headers, { path: '/v1/images/generations' });
      assert.equal(response.status, 200, await response.text());
      assert.equal((await records.ended(jobIdOf(response))).cost, cost, JSON.stringify(more));
    }
  });

  test('a job shows the cost stated by its vendor, and null when that cost is impossible', async () => {
    const read = async (told: Told) => {
      tell(told);
      const id = await records.postLater(chat);
      const shown = (): Promise<ReadJob & { cost: number; vendor_cost: number | null }> => records.read(id) as never;
      const live = await eventually(async () => {
        const job = await shown();
        assert.equal(job.status, 'completed');
        return job;
      });
      await records.forget(id);
      const { cost, vendor_cost: kept } = await shown();
      assert.deepEqual([live.cost, live.vendor_cost], [cost, kept]);
      const { vendor_cost: row } = await records.ended(id);
      assert.equal(row, kept === null ? null : Math.round(kept * 1e9));
      return [cost, kept];
    };
    assert.deepEqual(await read(asRecorded), [0.005073, 0.00507]);
    for (const cost of [-1, 1e10, 1e300, '0.1', null, { total_cost: -5 }, { total_cost: [] }, []]) {
      assert.deepEqual(await read({ cost }), [0.005073, null], JSON.stringify(cost));
    }
  });
});
