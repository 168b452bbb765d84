import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { readAccountMoney } from '../../../shared/accounts/account-money.ts';
import { eventually } from '../../support/eventually.ts';
import { JobRecords, jobIdOf } from '../../support/job-records.ts';
import { makeLimitedAccount } from '../../support/limited-account.ts';
import { beginStream, type FixtureVendor, startFixtureVendor } from '../../vendors/contracts/fixture-vendor.ts';

const prompt = 'A lighthouse in a storm, seen from the harbour wall.';
const image = { tasks: ['generation' as const, 'edit' as const], partial: true, response_format: false };
const routes = [{ vendor: 'painter', model: 'gpt-image-1' }];

/** The event of a partial image that is too long to stay in the log. */
const partial = (index: number): string => {
  const fields = { type: 'image_generation.partial_image', partial_image_index: index, b64_json: 'A'.repeat(300_000) };
  return `data: ${JSON.stringify(fields)}\n\n`;
};

describe('what a streamed image costs that its caller ends after partial images', () => {
  let records: JobRecords;
  let vendor: FixtureVendor;
  before(async () => {
    vendor = await startFixtureVendor();
    records = await JobRecords.start({
      settings: { SLUICE_DEADLINE_SECONDS: '4' },
      configuration: {
        routing: { attempts: 1 },
        vendors: { painter: { like: 'openai', base_url: vendor.baseUrl, api_keys: ['any'] } },
        models: {
          tokens: {
            capability: 'image',
            prices: { input: 5, output: 5, image_input: 10, image_output: 40 },
            image,
            routes,
          },
          pieces: { capability: 'image', prices: { image: 0.04 }, image, routes },
        },
      },
    });
  });
  after(async () => {
    await records.stop();
    await vendor.close();
  });

  /** What a request is charged that ends after this many partial images. */
  async function cut(fields: object | FormData, sent: number, leaves: boolean, path = 'generations') {
    vendor.answer((response) => {
      beginStream(response);
      for (let index = 0; index < sent; index += 1) response.write(partial(index));
    });
    const { id: account, key } = await makeLimitedAccount(records.gateway, { credit: 10_000_000_000 });
    const left = new AbortController();
    const isForm = fields instanceof FormData;
    const response = await fetch(`${records.gateway.url}/v1/images/${path}`, {
      ...{ method: 'POST', signal: left.signal },
      body: isForm ? fields : JSON.stringify({ prompt, stream: true, ...fields }),
      headers: {
        ...{ authorization: `Bearer ${key}`, ...(!isForm && { 'content-type': 'application/json' }) },
      },
    });
    assert.equal(response.status, 200);
    const reader = response.body?.getReader() ?? assert.fail();
    const decoder = new TextDecoder();
    let text = '';
    for (let events = 0; events < sent; events = text.split('.partial_image"').length - 1) {
      text += decoder.decode((await reader.read()).value ?? assert.fail('the stream ended'), { stream: true });
    }
    if (leaves) left.abort();
    else while (!(await reader.read().catch(() => ({ done: true }))).done);
    const { cost, usage, outcome } = await records.ended(jobIdOf(response));
    assert.equal(outcome, leaves ? 'cancelled' : 'failed');
    await eventually(async () => {
      const { held, charged } = (await readAccountMoney(records.redis, account)) ?? assert.fail();
      assert.deepEqual([held, charged], [0, cost], 'it is not settled');
    });
    return { cost, usage: JSON.parse(usage ?? '{}') };
  }

  const input = Math.ceil(prompt.length / 4);

  for (const leaves of [true, false]) {
    const how = leaves ? 'whose client disconnects' : 'that its deadline ends';

    it(`a streamed image ${how} costs its prompt and 100 tokens for each partial image`, async () => {
      const { cost, usage } = await cut({ model: 'tokens', partial_images: 3 }, 2, leaves);
      assert.equal(cost, input * 5000 + 200 * 40_000);
      assert.deepEqual([usage.input_tokens, usage.output_tokens, usage.estimated], [input, 200, true]);
    });
  }

  it('a streamed image that is cut costs no more partial images than it requested, whatever its vendor sends', async () => {
    const { cost } = await cut({ model: 'tokens', partial_images: 1 }, 4, true);
    assert.equal(cost, input * 5000 + 100 * 40_000);
  });

  it('a streamed edit that is cut costs the images that its vendor was shown, too, of links and of uploads', async () => {
    const shown = { image_url: `data:image/png;base64,${'A'.repeat(400)}` };
    const asked = { model: 'tokens', partial_images: 1, images: [shown, shown] };
    const usual = 2 * 323;
    const { cost, usage } = await cut({ ...asked, mask: shown }, 1, true, 'edits');
    assert.equal(cost, input * 5000 + usual * 10_000 + 100 * 40_000);
    assert.deepEqual(usage.input_tokens_details, { text_tokens: input, image_tokens: usual });
    const high = 2 * (323 + 4160);
    assert.equal((await cut({ ...asked, input_fidelity: 'high' }, 1, true, 'edits')).usage.input_tokens, input + high);
    const form = new FormData();
    for (const [name, value] of Object.entries({ model: 'tokens', prompt, stream: 'true', partial_images: '1' })) {
      form.append(name, value);
    }
    for (const name of ['image[]', 'image[]', 'mask'])
      form.append(name, new Blob(['png'], { type: 'image/png' }), 'a.png');
    assert.equal((await cut(form, 1, true, 'edits')).usage.input_tokens, input + usual);
  });

  it('a streamed image that is cut costs nothing by a price per image: none is complete', async () => {
    const { cost, usage } = await cut({ model: 'pieces', partial_images: 2 }, 1, true);
    assert.deepEqual([cost, usage], [0, { images: 0 }]);
  });
});
