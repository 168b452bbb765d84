import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import OpenAI from 'openai';
import { assertErrorAnswer, errorDetails } from '../../support/error-answers.ts';
import { TestGateway } from '../../support/gateway.ts';

describe('models', () => {
  let gateway: TestGateway;
  before(async () => {
    const routes = [{ vendor: 'sandbox', model: 'sandbox-chat' }];
    const limits = {
      context_window: 8192,
      max_output_tokens: 1024,
      input: ['text' as const],
      output: ['text' as const],
    };
    const known = {
      capability: 'chat' as const,
      owned_by: 'sandbox',
      routes,
      ...limits,
      prices: { input: 0.5, output: 2 },
      deprecated_at: '2027-01-31',
    };
    gateway = await TestGateway.start({ workers: 0, configuration: { models: { 'my-chat': known } } });
  });
  after(() => gateway.stop());

  it('GET /v1/models lists the models of the vendors that are on', async () => {
    const { data } = await gateway.client().models.list();
    assert.deepEqual(data.map(({ id }) => id).sort(), [
      'my-chat',
      'sandbox-chat',
      'sandbox-embedding',
      'sandbox-image',
      'sandbox-instruct',
      'sandbox-reasoning',
      'sandbox-responses',
      'sandbox-speech',
      'sandbox-transcribe',
      'sandbox-video',
      'sandbox-video-portrait',
    ]);
    for (const model of data) {
      assert.equal(model.object, 'model');
      assert.equal(model.owned_by, 'sandbox');
      assert.ok(Number.isInteger(model.created));
    }
  });

  it('GET /v1/models/{id} returns the same model as the list', async () => {
    const client = gateway.client();
    const { data } = await client.models.list();
    for (const model of data) {
      const retrieved = await client.models.retrieve(model.id);
      assert.deepEqual({ ...retrieved }, { ...model });
    }
  });

  it('GET /v1/models shows capability, limits and prices of a model, and omits unknown facts', async () => {
    const { data } = await gateway.client().models.list();
    const facts = (id: string) => data.find((model) => model.id === id) as unknown as Record<string, unknown>;
    const { id, object, created, ...known } = facts('my-chat');
    assert.deepEqual([id, object, typeof created], ['my-chat', 'model', 'number']);
    const limits = { context_window: 8192, max_output_tokens: 1024, input: ['text'], output: ['text'] };
    const prices = { input: 0.5, output: 2 };
    const end = { deprecated_at: Date.parse('2027-01-31T00:00:00Z') / 1000, shutdown_date: '2027-01-31' };
    assert.deepEqual(known, { owned_by: 'sandbox', capability: 'chat', ...limits, prices, ...end });
    assert.equal(facts('sandbox-embedding').capability, 'embedding');
    assert.deepEqual(facts('sandbox-speech').prices, { character: 0.000001 });
    for (const model of data) {
      const told = JSON.stringify(model);
      assert.ok(!/null|\[\]/.test(told), told);
    }
  });

  for (const id of ['gpt-unknown', 'meta/llama/unknown', 'meta%2Fllama', 'ünknown', 'a b']) {
    it(`GET /v1/models/${id} returns 404 model_not_found`, async () => {
      const response = await gateway.fetch(`/v1/models/${id}`);
      const error = await assertErrorAnswer(response, 404, 'model_not_found');
      assert.ok(error.message.includes(decodeURIComponent(id)));
    });
  }

  it('GET /v1/models/{id} accepts an id with slashes from the OpenAI client', async () => {
    await assert.rejects(gateway.client().models.retrieve('meta/llama/unknown'), (error) => {
      assert.ok(error instanceof OpenAI.NotFoundError);
      assert.equal(error.code, 'model_not_found');
      return true;
    });
  });

  it('GET /v1/models/{id} returns 400 or 404 in the error shape for a broken percent-encoding', async () => {
    const response = await gateway.fetch('/v1/models/%E0%A4%A');
    assert.equal(errorDetails(await response.json()).type, 'invalid_request_error');
    assert.ok(response.status === 400 || response.status === 404, `status ${response.status}`);
  });

  it('GET /v1/models/{id} returns 404 for a model of a vendor that is off', async () => {
    await assert.rejects(gateway.client().models.retrieve('gpt-4o-mini'), OpenAI.NotFoundError);
  });

  for (const path of ['/v1/models', '/v1/models/sandbox-chat']) {
    it(`GET ${path} returns 401 for a missing, malformed or wrong key`, async () => {
      for (const authorization of ['', 'Basic abc', 'Bearer', `Bearer sk-sluice-${'x'.repeat(43)}`]) {
        const response = await gateway.fetch(path, { headers: { authorization } });
        await assertErrorAnswer(response, 401, 'invalid_api_key');
      }
      await assert.rejects(gateway.client({ apiKey: 'sk-wrong' }).models.list(), OpenAI.AuthenticationError);
    });
  }

  it('GET /v1/models accepts the key in x-api-key', async () => {
    const response = await fetch(`${gateway.url}/v1/models`, { headers: { 'x-api-key': gateway.apiKey } });
    assert.equal(response.status, 200);
  });

  it('every answer without a job has an x-request-id with the prefix req_', async () => {
    for (const path of ['/v1/models', '/v1/models/none', '/nowhere']) {
      const response = await gateway.fetch(path);
      assert.match(response.headers.get('x-request-id') ?? '', /^req_[0-9a-f]{32}$/);
    }
  });
});
