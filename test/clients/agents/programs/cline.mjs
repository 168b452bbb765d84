import assert from 'node:assert/strict';
import { apiKey, assertSaid, baseUrl, exactly, runCases, said, wrongKey } from '../../javascript/cases.mjs';
import { calls, runAgent } from '../run-agent.mjs';

const script = 'cline/bin/cline';
/** Its sessions are its own: no daemon of them is left behind. */
const settings = { CLINE_SESSION_BACKEND_MODE: 'local' };
const apis = {
  chat: { provider: 'openai-compatible', model: 'sandbox-chat' },
  'native responses': { provider: 'openai-native', model: 'sandbox-responses' },
};

async function configure({ provider, model }) {
  const run = await runAgent(
    script,
    ['auth', '-p', provider, '-k', apiKey, '-m', model, '-b', `${baseUrl}/v1`],
    settings,
  );
  assert.equal(run.code, 0, run.output);
}

async function ask(prompt, { provider, model }, key = apiKey) {
  const run = await runAgent(script, ['--json', '-P', provider, '-k', key, '-m', model, prompt], settings);
  const { events } = run;
  return { ...run, events: events.filter(({ type }) => type === 'agent_event').map(({ event }) => event), all: events };
}

function result({ all }) {
  return all.find(({ type }) => type === 'run_result');
}

function lastText(run) {
  assert.equal(run.code, 0, run.output);
  return result(run).text;
}

for (const [api, target] of Object.entries(apis)) {
  await runCases(api, {
    streamed: async () => {
      await configure(target);
      const run = await ask(exactly, target);
      assert.equal(lastText(run), said);
      assertSaid(run.events.filter(({ type }) => type === 'content_start').map(({ text }) => text));
      assert.ok(result(run).usage.outputTokens > 0);
    },
    'tool turn': async () => {
      const run = await ask(calls('run_commands', { commands: ["expr 6 '*' 7"] }), target);
      assert.match(lastText(run), /\b42\b/);
    },
    error: async () => {
      const unknown = await ask(exactly, { ...target, model: 'no-such-model' });
      assert.equal(unknown.code, 1, unknown.output);
      assert.match(result(unknown).text, /no-such-model/);
      const refused = await ask(exactly, target, wrongKey);
      assert.equal(refused.code, 1, refused.output);
      assert.match(result(refused).text, /Incorrect API key provided/);
    },
  });
}
