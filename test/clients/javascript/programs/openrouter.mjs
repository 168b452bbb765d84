import assert from 'node:assert/strict';
import { OpenRouter } from '@openrouter/sdk';
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
} from '../cases.mjs';

const connection = { serverURL: `${baseUrl}/v1`, retryConfig: { strategy: 'none' } };
const client = new OpenRouter({ ...connection, apiKey });
const stranger = new OpenRouter({ ...connection, apiKey: wrongKey });
const { name, description } = multiply;

async function assertErrors(send) {
  const unknown = await failure(() => send(client, { model: 'no-such-model' }));
  assert.equal(unknown.statusCode, 404, String(unknown));
  const refused = await failure(() => send(stranger, {}));
  assert.equal(refused.statusCode, 401, String(refused));
}

const chatAsk = { model: 'sandbox-chat', messages: [{ role: 'user', content: exactly }] };
const chat = (more, by = client) => by.chat.send({ chatRequest: { ...chatAsk, ...more } });

await runCases('chat', {
  held: async () => {
    const answer = await chat({});
    assert.equal(answer.choices[0].message.content, said);
    assert.ok(answer.usage.completionTokens > 0);
  },
  streamed: async () => {
    // Not with `includeUsage`: OpenAI's chunks then have `usage: null`, which OpenRouter's client refuses, for its own service leaves it out.
    const chunks = await collect(await chat({ stream: true }));
    assertSaid(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? ''));
  },
  'tool turn': async () => {
    const tools = [{ type: 'function', function: { name, description, parameters: multiplySchema } }];
    const messages = [{ role: 'user', content: question }];
    const first = await chat({ messages, tools });
    const asked = first.choices[0].message;
    const content = multiply.execute(JSON.parse(asked.toolCalls[0].function.arguments));
    const result = { role: 'tool', toolCallId: asked.toolCalls[0].id, content };
    const answer = await chat({ messages: [...messages, asked, result], tools });
    assert.match(answer.choices[0].message.content, /\b42\b/);
  },
  'structured output': async () => {
    const responseFormat = {
      type: 'json_schema',
      jsonSchema: { name: 'forecast', strict: true, schema: forecastSchema },
    };
    const answer = await chat({ messages: [{ role: 'user', content: 'Good morning' }], responseFormat });
    assertForecast(JSON.parse(answer.choices[0].message.content));
  },
  error: () => assertErrors((by, more) => chat(more, by)),
});

for (const model of ['sandbox-chat', 'sandbox-responses']) {
  const respond = (more, by = client) => by.responses.send({ responsesRequest: { model, input: exactly, ...more } });
  const textOf = ({ output }) =>
    output
      .filter(({ type }) => type === 'message')
      .flatMap(({ content }) => content.map(({ text }) => text))
      .join('');
  await runCases(`responses of ${model}`, {
    held: async () => {
      const answer = await respond({});
      assert.equal(textOf(answer), said);
      assert.ok(answer.usage.outputTokens > 0);
    },
    streamed: async () => {
      const events = await collect(await respond({ stream: true }));
      assertSaid(events.filter(({ type }) => type === 'response.output_text.delta').map(({ delta }) => delta));
      assert.equal(events.at(-1).type, 'response.completed');
    },
    'tool turn': async () => {
      const tools = [{ type: 'function', name, description, parameters: multiplySchema, strict: true }];
      const first = await respond({ input: question, tools });
      const call = first.output.find(({ type }) => type === 'function_call');
      const output = multiply.execute(JSON.parse(call.arguments));
      const { callId } = call;
      const input = [{ role: 'user', content: question }, call, { type: 'function_call_output', callId, output }];
      assert.match(textOf(await respond({ input, tools })), /\b42\b/);
    },
    'structured output': async () => {
      const format = { type: 'json_schema', name: 'forecast', strict: true, schema: forecastSchema };
      assertForecast(JSON.parse(textOf(await respond({ input: 'Good morning', text: { format } }))));
    },
    error: () => assertErrors((by, more) => respond(more, by)),
  });
}
