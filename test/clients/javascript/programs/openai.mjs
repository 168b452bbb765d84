import assert from 'node:assert/strict';
import OpenAI from 'openai';
import { zodResponseFormat, zodTextFormat } from 'openai/helpers/zod';
import { apiKey, assertForecast, baseUrl, forecast, runCases } from '../cases.mjs';
import { runOpenAiCases } from '../openai-cases.mjs';

await runOpenAiCases(OpenAI);

const client = new OpenAI({ baseURL: `${baseUrl}/v1`, apiKey, maxRetries: 0 });
const model = 'sandbox-chat';
const messages = [{ role: 'user', content: 'Good morning' }];

await runCases('chat', {
  'parsed output': async () => {
    const response_format = zodResponseFormat(forecast, 'forecast');
    const answer = await client.chat.completions.parse({ model, messages, response_format });
    assertForecast(answer.choices[0].message.parsed);
    const streamed = await client.chat.completions.stream({ model, messages, response_format }).finalChatCompletion();
    assertForecast(streamed.choices[0].message.parsed);
  },
});
await runCases('responses of sandbox-chat', {
  'parsed output': async () => {
    const text = { format: zodTextFormat(forecast, 'forecast') };
    const answer = await client.responses.parse({ model, input: 'Good morning', text });
    assertForecast(answer.output_parsed);
    const streamed = await client.responses.stream({ model, input: 'Good morning', text }).finalResponse();
    assertForecast(streamed.output_parsed);
    assert.equal(streamed.status, 'completed');
  },
});
