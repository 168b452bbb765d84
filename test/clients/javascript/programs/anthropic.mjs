import assert from 'node:assert/strict';
import Anthropic from '@anthropic-ai/sdk';
import { betaZodTool } from '@anthropic-ai/sdk/helpers/beta/zod';
import { zodOutputFormat } from '@anthropic-ai/sdk/helpers/zod';
import {
  apiKey,
  assertForecast,
  assertSaid,
  baseUrl,
  collect,
  exactly,
  failure,
  forecast,
  multiply,
  question,
  runCases,
  said,
  wrongKey,
} from '../cases.mjs';

const client = new Anthropic({ baseURL: baseUrl, apiKey, maxRetries: 0 });
const stranger = new Anthropic({ baseURL: baseUrl, apiKey: wrongKey, maxRetries: 0 });
const ask = { model: 'sandbox-chat', max_tokens: 1000, messages: [{ role: 'user', content: exactly }] };
const tool = betaZodTool({ ...multiply, run: multiply.execute });
const toolAsk = { ...ask, messages: [{ role: 'user', content: question }], tools: [tool] };

function textOf({ content }) {
  return content.map((block) => (block.type === 'text' ? block.text : '')).join('');
}

await runCases('messages', {
  held: async () => {
    const answer = await client.messages.create(ask);
    assert.equal(textOf(answer), said);
    assert.equal(answer.stop_reason, 'end_turn');
    assert.ok(answer.usage.output_tokens > 0);
  },
  streamed: async () => {
    const events = await collect(await client.messages.create({ ...ask, stream: true }));
    assertSaid(events.map(({ delta }) => (delta?.type === 'text_delta' ? delta.text : '')));
    assert.equal(textOf(await client.messages.stream(ask).finalMessage()), said);
  },
  'timeout of half a second': async () => {
    // Whether it is fast enough does not matter here: the header that the client makes of it must not be refused.
    const answer = await client.messages.create(ask, { timeout: 500 }).catch((error) => error);
    assert.ok(answer.type === 'message' || answer instanceof Anthropic.APIConnectionTimeoutError, String(answer));
  },
  'tool turn': async () => {
    const turns = await collect(client.beta.messages.toolRunner(toolAsk));
    assert.equal(turns.length, 2);
    assert.match(textOf(turns[1]), /\b42\b/);
  },
  'streamed tool turn': async () => {
    const last = await client.beta.messages.toolRunner({ ...toolAsk, stream: true }).runUntilDone();
    assert.match(textOf(last), /\b42\b/);
  },
  'structured output': async () => {
    const messages = [{ role: 'user', content: 'Good morning' }];
    const answer = await client.messages.parse({
      ...ask,
      messages,
      output_config: { format: zodOutputFormat(forecast) },
    });
    assertForecast(answer.parsed_output);
  },
  'count of tokens': async () => {
    const { model, messages } = ask;
    assert.ok((await client.messages.countTokens({ model, messages })).input_tokens > 0);
  },
  error: async () => {
    const unknown = await failure(() => client.messages.create({ ...ask, model: 'no-such-model' }));
    assert.ok(unknown instanceof Anthropic.NotFoundError, String(unknown));
    assert.equal(unknown.error.error.type, 'not_found_error');
    const refused = await failure(() => stranger.messages.stream(ask).finalMessage());
    assert.ok(refused instanceof Anthropic.AuthenticationError, String(refused));
  },
});
