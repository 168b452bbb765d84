import assert from 'node:assert/strict';
import { it } from 'node:test';
import { executeChat } from '../../../workers/execute/execute.ts';
import { type AnswerHolder, freeBytes } from '../../../workers/http/answer-memory.ts';
import { createVendor } from '../../../workers/vendors/registry.ts';
import { madeUpModel } from '../../support/routed-model.ts';
import { vendorSettings } from '../../support/vendor-settings.ts';
import { callOf, collect, sendJson, startFixtureVendor } from '../contracts/fixture-vendor.ts';

it('the long answers to the prompts of one completion count as memory of its job', async () => {
  const server = await startFixtureVendor();
  const apiKey = 'a-key-of-some-length-0123456789';
  const vendor = createVendor('openai', vendorSettings('openai', server.baseUrl, apiKey), apiKey);
  const message = { role: 'assistant', content: 'x'.repeat(freeBytes) };
  const answer = { choices: [{ index: 0, message, finish_reason: 'stop' }] };
  server.answer((response) => sendJson(response, 200, JSON.stringify(answer)));
  const holder: AnswerHolder = {};
  const request = JSON.stringify({ prompt: ['a', 'b'] });
  const call = callOf({ model: 'm', stream: false, request, holder });
  const row = madeUpModel({ id: 'm', capability: 'chat' });
  const { body } = await executeChat({ vendor, row, endpoint: 'completions', keep: false, call, sink: collect() });
  assert.equal(JSON.parse(body).choices.length, 2);
  assert.equal(holder.holdsAnswer, true);
  await vendor.close();
  await server.close();
});
