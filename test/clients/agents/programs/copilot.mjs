import assert from 'node:assert/strict';
import { apiKey, assertSaid, baseUrl, exactly, runCases, said, wrongKey } from '../../javascript/cases.mjs';
import { calls, runAgent } from '../run-agent.mjs';

const apis = {
  chat: {},
  responses: { COPILOT_PROVIDER_WIRE_API: 'responses' },
  'native responses': { COPILOT_PROVIDER_WIRE_API: 'responses', COPILOT_MODEL: 'sandbox-responses' },
  'responses by WebSocket': { COPILOT_PROVIDER_WIRE_API: 'responses', COPILOT_PROVIDER_TRANSPORT: 'websockets' },
  messages: { COPILOT_PROVIDER_TYPE: 'anthropic', COPILOT_PROVIDER_BASE_URL: baseUrl },
  azure: { COPILOT_PROVIDER_TYPE: 'azure', COPILOT_PROVIDER_BASE_URL: baseUrl },
};

function ask(prompt, settings, ...options) {
  const args = ['-p', prompt, '--allow-all-tools', '--output-format', 'json', ...options];
  return runAgent('@github/copilot/npm-loader.js', args, {
    COPILOT_OFFLINE: 'true',
    COPILOT_PROVIDER_BASE_URL: `${baseUrl}/v1`,
    COPILOT_PROVIDER_API_KEY: apiKey,
    COPILOT_MODEL: 'sandbox-chat',
    ...settings,
  });
}

function ofType({ events }, wanted) {
  return events.filter(({ type }) => type === wanted).map(({ data }) => data);
}

function lastText(run) {
  assert.equal(run.code, 0, run.output);
  return ofType(run, 'assistant.message').at(-1).content;
}

for (const [api, settings] of Object.entries(apis)) {
  await runCases(api, {
    held: async () => {
      assert.equal(lastText(await ask(exactly, settings, '--stream', 'off')), said);
    },
    streamed: async () => {
      const run = await ask(exactly, settings, '--stream', 'on');
      assert.equal(lastText(run), said);
      assertSaid(ofType(run, 'assistant.message_delta').map(({ deltaContent }) => deltaContent));
    },
    'tool turn': async () => {
      const call = calls('bash', { command: "expr 6 '*' 7", description: 'Multiplies', mode: 'sync' });
      assert.match(lastText(await ask(call, settings)), /\b42\b/);
    },
    error: async () => {
      const refused = await ask(exactly, { ...settings, COPILOT_PROVIDER_API_KEY: wrongKey });
      assert.equal(refused.code, 1, refused.output);
      assert.equal(ofType(refused, 'session.error')[0].statusCode, 401);
      const unknown = await ask(exactly, { ...settings, COPILOT_MODEL: 'no-such-model' });
      assert.equal(unknown.code, 1, unknown.output);
      const { statusCode, message } = ofType(unknown, 'session.error')[0];
      assert.match(message, /no-such-model/);
      // It takes whatever a socket tells it for a 500.
      assert.equal(statusCode, api === 'responses by WebSocket' ? 500 : 404);
    },
  });
}
