import assert from 'node:assert/strict';
import {
  apiKey,
  assertForecast,
  assertSaid,
  baseUrl,
  collect,
  exactly,
  failure,
  forecastSchema,
  multiply,
  multiplySchema,
  question,
  runCases,
  said,
  wrongKey,
} from './cases.mjs';

const { name, description } = multiply;
const connection = { baseURL: `${baseUrl}/v1`, maxRetries: 0 };

/** Every version of OpenAI's client does this with chat completions and responses. */
export async function runOpenAiCases(OpenAI) {
  const client = new OpenAI({ ...connection, apiKey });
  const stranger = new OpenAI({ ...connection, apiKey: wrongKey });
  await runCases('chat', chatCases(client, stranger, OpenAI));
  for (const model of ['sandbox-chat', 'sandbox-responses']) {
    await runCases(`responses of ${model}`, responsesCases(client, stranger, OpenAI, model));
  }
}

async function assertErrors(OpenAI, ask, askAsStranger) {
  const unknown = await failure(() => ask('no-such-model'));
  assert.ok(unknown instanceof OpenAI.NotFoundError, String(unknown));
  assert.equal(unknown.code, 'model_not_found');
  const refused = await failure(askAsStranger);
  assert.ok(refused instanceof OpenAI.AuthenticationError, String(refused));
  assert.equal(refused.code, 'invalid_api_key');
}

function chatCases(client, stranger, OpenAI) {
  const ask = { model: 'sandbox-chat', messages: [{ role: 'user', content: exactly }] };
  const runTools = (body) => (client.chat.completions.runTools ? client : client.beta).chat.completions.runTools(body);
  const tools = [
    {
      type: 'function',
      function: { name, description, parameters: multiplySchema, parse: JSON.parse, function: multiply.execute },
    },
  ];
  const messages = [{ role: 'user', content: question }];
  return {
    held: async () => {
      const answer = await client.chat.completions.create(ask);
      assert.equal(answer.choices[0].message.content, said);
      assert.equal(answer.choices[0].finish_reason, 'stop');
      assert.ok(answer.usage.completion_tokens > 0);
    },
    streamed: async () => {
      const body = { ...ask, stream: true, stream_options: { include_usage: true } };
      const chunks = await collect(await client.chat.completions.create(body));
      assertSaid(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? ''));
      assert.ok(chunks.at(-1).usage.completion_tokens > 0);
    },
    'tool turn': async () => {
      assert.match(await runTools({ model: 'sandbox-chat', messages, tools }).finalContent(), /\b42\b/);
    },
    'streamed tool turn': async () => {
      const runner = runTools({ model: 'sandbox-chat', messages, tools, stream: true });
      assert.match(await runner.finalContent(), /\b42\b/);
    },
    'structured output': async () => {
      const json_schema = { name: 'forecast', strict: true, schema: forecastSchema };
      const answer = await client.chat.completions.create({
        ...ask,
        messages: [{ role: 'user', content: 'Good morning' }],
        response_format: { type: 'json_schema', json_schema },
      });
      assertForecast(JSON.parse(answer.choices[0].message.content));
    },
    error: () =>
      assertErrors(
        OpenAI,
        (model) => client.chat.completions.create({ ...ask, model }),
        () => stranger.chat.completions.create({ ...ask, stream: true }),
      ),
  };
}

function responsesCases(client, stranger, OpenAI, model) {
  const ask = { model, input: exactly };
  const tools = [{ type: 'function', name, description, parameters: multiplySchema, strict: true }];
  const callOf = ({ output }) => output.find(({ type }) => type === 'function_call');
  const resultOf = (call) => [
    { type: 'function_call_output', call_id: call.call_id, output: multiply.execute(JSON.parse(call.arguments)) },
  ];
  return {
    held: async () => {
      const answer = await client.responses.create(ask);
      assert.equal(answer.output_text, said);
      assert.ok(answer.usage.output_tokens > 0);
    },
    streamed: async () => {
      const events = await collect(await client.responses.create({ ...ask, stream: true }));
      assertSaid(events.filter(({ type }) => type === 'response.output_text.delta').map(({ delta }) => delta));
      assert.equal(events.at(-1).type, 'response.completed');
    },
    'tool turn': async () => {
      const first = await client.responses.create({ model, input: question, tools });
      const next = { model, previous_response_id: first.id, input: resultOf(callOf(first)), tools };
      const answer = await client.responses.create(next);
      assert.match(answer.output_text, /\b42\b/);
    },
    'streamed tool turn': async () => {
      const first = await client.responses.stream({ model, input: question, tools }).finalResponse();
      const input = [{ role: 'user', content: question }, ...first.output, ...resultOf(callOf(first))];
      const answer = await client.responses.stream({ model, input, tools }).finalResponse();
      // Version 4 gives streamed responses no `output_text`.
      assert.match(answer.output.at(-1).content[0].text, /\b42\b/);
    },
    'structured output': async () => {
      const format = { type: 'json_schema', name: 'forecast', strict: true, schema: forecastSchema };
      const answer = await client.responses.create({ model, input: 'Good morning', text: { format } });
      assertForecast(JSON.parse(answer.output_text));
    },
    error: () =>
      assertErrors(
        OpenAI,
        (other) => client.responses.create({ ...ask, model: other }),
        () => stranger.responses.create({ ...ask, stream: true }),
      ),
  };
}
