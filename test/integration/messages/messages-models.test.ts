import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type Anthropic from '@anthropic-ai/sdk';
import { anthropicClient } from '../../support/anthropic-client.ts';
import { assertAnthropicError } from '../../support/anthropic-errors.ts';
import { TestGateway } from '../../support/gateway.ts';

describe('models for Anthropic clients', () => {
  let gateway: TestGateway;
  let client: Anthropic;
  before(async () => {
    gateway = await TestGateway.start({ workers: 0 });
    client = anthropicClient(gateway);
  });
  after(() => gateway.stop());

  it('GET /v1/models with anthropic-version lists the same models in the Anthropic shape', async () => {
    const own = (await gateway.client().models.list()).data.map(({ id }) => id);
    const page = await client.models.list({ limit: 1000 });
    assert.deepEqual(page.data.map(({ id }) => id).sort(), own.sort());
    assert.equal(page.has_more, false);
    assert.equal(page.first_id, page.data[0]?.id);
    assert.equal(page.last_id, page.data.at(-1)?.id);
    for (const model of page.data) {
      assert.deepEqual(model, {
        ...{ type: 'model', id: model.id, display_name: model.id, created_at: '2025-01-01T00:00:00.000Z' },
        ...{ max_input_tokens: null, max_tokens: null, lifecycle: 'active', capabilities: null, deprecated_at: null },
        ...{ retires_at: null, line: null },
      });
      assert.deepEqual(await client.models.retrieve(model.id), model);
    }
  });

  it('GET /v1/models pages forwards and backwards, so that the Anthropic client finds each model once', async () => {
    const all = (await client.models.list({ limit: 1000 })).data.map(({ id }) => id);
    for (const limit of [1, 2, 3]) {
      const forwards: string[] = [];
      for await (const { id } of client.models.list({ limit })) forwards.push(id);
      assert.deepEqual(forwards, all);
      const backwards: string[] = [];
      let page = await client.models.list({ limit, before_id: all.at(-1) as string });
      for (;;) {
        backwards.unshift(...page.data.map(({ id }) => id));
        if (!page.hasNextPage()) break;
        page = await page.getNextPage();
      }
      assert.deepEqual(backwards, all.slice(0, -1));
    }
    assert.deepEqual((await client.models.list({ lifecycle: ['retired'] })).data, []);
    assert.deepEqual((await client.models.list({ lifecycle: ['active', 'retired'], limit: 1 })).data.length, 1);
  });

  it('GET /v1/models returns 400 in the Anthropic shape for an invalid page', async () => {
    for (const query of ['limit=0', 'limit=1001', 'limit=x', 'after_id=none', 'before_id=none']) {
      const headers = { 'anthropic-version': '2023-06-01' };
      const error = await assertAnthropicError(
        await gateway.fetch(`/v1/models?${query}`, { headers }),
        400,
        'invalid_request_error',
      );
      assert.ok(error.message.includes(query.split('=')[0] as string));
    }
  });
});
