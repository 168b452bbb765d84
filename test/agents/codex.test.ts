import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { TestGateway } from '../support/gateway.ts';
import { AgentBench } from './agent-bench.ts';
import type { AgentEvent, AgentRun } from './run-agent.ts';

const transports = [
  { name: 'SSE', webSocket: false },
  { name: 'WebSocket', webSocket: true },
];
// The first one's vendor knows the Responses API; for the others it is a view over chat.
const models = ['sandbox-responses', 'sandbox-chat', 'sandbox-reasoning'];

describe('@openai/codex as a client', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await TestGateway.start();
  });
  after(() => gateway.stop());
  const bench = new AgentBench(() => gateway);

  for (const { name, webSocket } of transports) {
    for (const model of models) {
      it(`a text turn over ${name} with ${model} ends with the model's answer`, async () => {
        const run = await bench.runCodex('Reply with exactly: Hello from Sluice', { model, webSocket });
        assertCompleted(run);
        assert.deepEqual(messages(run), ['Hello from Sluice']);
        assert.deepEqual(bench.front.requests, [webSocket ? 'WebSocket /v1/responses' : 'POST /v1/responses']);
        assert.deepEqual(bench.front.elsewhere, []);
      });

      it(`a tool turn over ${name} with ${model} runs the command and tells the model its output`, async () => {
        const command = "expr 6 '*' 7 > made.txt; cat made.txt";
        const run = await bench.runCodex(`TOOL:exec_command ${JSON.stringify({ cmd: command })}`, { model, webSocket });
        assertCompleted(run);
        assert.equal(await readFile(join(bench.work, 'made.txt'), 'utf8'), '42\n');
        const [{ aggregated_output, exit_code } = {}, ...others] = completed(run, 'command_execution');
        assert.deepEqual([aggregated_output, exit_code, others], ['42\n', 0, []]);
        const [answer, ...more] = messages(run);
        assert.match(answer ?? '', /\b42\b/);
        assert.deepEqual(more, []);
        const asked = webSocket ? ['WebSocket /v1/responses'] : ['POST /v1/responses', 'POST /v1/responses'];
        assert.deepEqual(bench.front.requests, asked);
        assert.deepEqual(bench.front.elsewhere, []);
      });
    }
  }
});

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
