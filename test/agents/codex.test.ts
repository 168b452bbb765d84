import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import { TestGateway } from '../support/gateway.ts';
import { AgentFront } from './agent-front.ts';
import { type AgentEvent, type AgentRun, runAgent } from './run-agent.ts';

const transports = [
  { name: 'SSE', webSocket: false },
  { name: 'WebSocket', webSocket: true },
];
// The first one's vendor knows the Responses API; for the others it is a view over chat.
const models = ['sandbox-responses', 'sandbox-chat', 'sandbox-reasoning'];

describe('@openai/codex as a client', () => {
  let gateway: TestGateway;
  let front: AgentFront;
  let folder: string;
  before(async () => {
    gateway = await TestGateway.start();
  });
  after(() => gateway.stop());
  beforeEach(async () => {
    front = await AgentFront.start(gateway.url);
    folder = await mkdtemp(join(tmpdir(), 'sluice-test-codex-'));
    await mkdir(join(folder, 'home'));
    await mkdir(join(folder, 'work'));
  });
  afterEach(async () => {
    await front.close();
    await rm(folder, { recursive: true, force: true });
  });

  async function runCodex(prompt: string, options: { model: string; webSocket: boolean }): Promise<AgentRun> {
    const home = join(folder, 'home');
    await writeFile(join(home, 'config.toml'), configuration({ ...options, baseUrl: `${front.url}/v1` }));
    const settings = { HOME: home, CODEX_HOME: home, SLUICE_KEY: gateway.apiKey, ...front.proxySettings };
    const args = ['exec', '--skip-git-repo-check', '--json', '--dangerously-bypass-approvals-and-sandbox', prompt];
    return runAgent('@openai/codex/bin/codex.js', args, { folder: join(folder, 'work'), settings });
  }

  for (const { name, webSocket } of transports) {
    for (const model of models) {
      it(`a text turn over ${name} with ${model} ends with the model's answer`, async () => {
        const run = await runCodex('Reply with exactly: Hello from Sluice', { model, webSocket });
        assertCompleted(run);
        assert.deepEqual(messages(run), ['Hello from Sluice']);
        assert.deepEqual(front.requests, [webSocket ? 'WebSocket /v1/responses' : 'POST /v1/responses']);
        assert.deepEqual(front.elsewhere, []);
      });

      it(`a tool turn over ${name} with ${model} runs the command and tells the model its output`, async () => {
        const command = "expr 6 '*' 7 > made.txt; cat made.txt";
        const run = await runCodex(`TOOL:exec_command ${JSON.stringify({ cmd: command })}`, { model, webSocket });
        assertCompleted(run);
        assert.equal(await readFile(join(folder, 'work', 'made.txt'), 'utf8'), '42\n');
        const [{ aggregated_output, exit_code } = {}, ...others] = completed(run, 'command_execution');
        assert.deepEqual([aggregated_output, exit_code, others], ['42\n', 0, []]);
        const [answer, ...more] = messages(run);
        assert.match(answer ?? '', /\b42\b/);
        assert.deepEqual(more, []);
        const asked = webSocket ? ['WebSocket /v1/responses'] : ['POST /v1/responses', 'POST /v1/responses'];
        assert.deepEqual(front.requests, asked);
        assert.deepEqual(front.elsewhere, []);
      });
    }
  }
});

function configuration({ model, webSocket, baseUrl }: { model: string; webSocket: boolean; baseUrl: string }): string {
  return `model = "${model}"
model_provider = "sluice"
check_for_update_on_startup = false
[features]
plugins = false
apps = false
[analytics]
enabled = false
[model_providers.sluice]
name = "Sluice"
base_url = "${baseUrl}"
env_key = "SLUICE_KEY"
wire_api = "responses"
supports_websockets = ${webSocket}
`;
}

/** The turn came to its end, was counted, and nothing was retried or refused on the way. */
function assertCompleted(run: AgentRun): void {
  assert.equal(run.code, 0, JSON.stringify(run));
  const failures = run.events.filter(({ type }) => type === 'error' || type === 'turn.failed');
  // Codex knows the limits of OpenAI's own models only, and says so.
  const unexpected = completed(run, 'error').filter(({ message }) => !message.startsWith('Model metadata for'));
  assert.deepEqual([failures, unexpected], [[], []]);
  const usage = run.events.find(({ type }) => type === 'turn.completed')?.usage;
  assert.ok(usage.input_tokens > 0 && usage.output_tokens > 0, JSON.stringify(run));
}

function completed(run: AgentRun, type: string): AgentEvent['item'][] {
  return run.events
    .filter((event) => event.type === 'item.completed' && event.item.type === type)
    .map(({ item }) => item);
}

function messages(run: AgentRun): string[] {
  return completed(run, 'agent_message').map(({ text }) => text);
}
