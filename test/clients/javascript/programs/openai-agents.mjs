import assert from 'node:assert/strict';
import { Agent, OpenAIProvider, Runner, tool } from '@openai/agents';
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

function runner(useResponses, key) {
  const modelProvider = new OpenAIProvider({ apiKey: key, baseURL: `${baseUrl}/v1`, useResponses });
  return new Runner({ modelProvider, tracingDisabled: true });
}

const { name, description, inputSchema: parameters, execute } = multiply;
const tools = [tool({ name, description, parameters, execute })];
const calculator = { name: 'Calculator', instructions: 'You help.' };

for (const [api, model, useResponses] of [
  ['chat', 'sandbox-chat', false],
  ['responses', 'sandbox-chat', true],
  ['native responses', 'sandbox-responses', true],
]) {
  const agents = runner(useResponses, apiKey);
  const agent = new Agent({ ...calculator, model });
  const withTools = new Agent({ ...calculator, model, tools });
  await runCases(api, {
    held: async () => {
      const { finalOutput, rawResponses } = await agents.run(agent, exactly);
      assert.equal(finalOutput, said);
      assert.ok(rawResponses[0].usage.outputTokens > 0);
    },
    streamed: async () => {
      const run = await agents.run(agent, exactly, { stream: true });
      const events = await collect(run);
      assertSaid(events.map(({ data }) => (data?.type === 'output_text_delta' ? data.delta : '')));
      assert.equal(run.finalOutput, said);
    },
    'tool turn': async () => {
      const { finalOutput, rawResponses } = await agents.run(withTools, question);
      assert.match(finalOutput, /\b42\b/);
      assert.equal(rawResponses.length, 2);
    },
    'streamed tool turn': async () => {
      const run = await agents.run(withTools, question, { stream: true });
      await run.completed;
      assert.match(run.finalOutput, /\b42\b/);
    },
    'structured output': async () => {
      const forecaster = new Agent({ ...calculator, model, outputType: forecast });
      assertForecast((await agents.run(forecaster, 'Good morning')).finalOutput);
    },
    error: async () => {
      const unknown = await failure(() => agents.run(new Agent({ ...calculator, model: 'no-such-model' }), exactly));
      assert.equal(unknown.status, 404, String(unknown));
      const refused = await failure(() => runner(useResponses, wrongKey).run(agent, exactly));
      assert.equal(refused.status, 401, String(refused));
    },
  });
}
