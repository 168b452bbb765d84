import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { TestGateway } from '../support/gateway.ts';
import { AgentBench } from './agent-bench.ts';
import type { AgentRun } from './run-agent.ts';

// The path that Anthropic's own SDK uses for what it has in beta.
const path = 'POST /v1/messages?beta=true';

/** A model with a maximum far below what Claude Code asks for of those that it does not know, 32,000 tokens. */
const small = 'a-small-model';
const ofSandbox = {
  capability: 'chat' as const,
  owned_by: 'me',
  created: '2026-11-29',
  input: ['text' as const],
  output: ['text' as const],
  context_window: 131_072,
  max_output_tokens: 4096,
  prices: { input: 1, output: 1 },
  routes: [{ vendor: 'sandbox', model: 'sandbox-chat' }],
};

describe('@anthropic-ai/claude-code as a client', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await TestGateway.start({ configuration: { models: { [small]: ofSandbox } } });
  });
  after(() => gateway.stop());
  const bench = new AgentBench(() => gateway);

  /** The answer of a run that came to its end without a complaint. */
  function resultOf(run: AgentRun): string {
    const result = run.events.find(({ type }) => type === 'result');
    assert.equal(result?.is_error, false, JSON.stringify(run));
    assert.equal(run.code, 0);
    assert.ok(result.usage.input_tokens > 0 && result.usage.output_tokens > 0, JSON.stringify(run));
    return result.result;
  }

  it('the key may come as an API key, too', async () => {
    const run = await bench.runClaude('Reply with exactly: Hello from Sluice', {
      model: 'sandbox-chat',
      keyName: 'ANTHROPIC_API_KEY',
    });
    assert.equal(resultOf(run), 'Hello from Sluice');
  });

  for (const model of ['sandbox-chat', 'sandbox-reasoning', small]) {
    it(`a text turn with ${model} ends with the model's answer`, async () => {
      const run = await bench.runClaude('Reply with exactly: Hello from Sluice', { model });
      assert.equal(resultOf(run), 'Hello from Sluice');
      assert.deepEqual(bench.front.requests, [path]);
      assert.deepEqual(bench.front.elsewhere, []);
    });

    it(`a tool turn with ${model} runs the command and tells the model its output`, async () => {
      const command = "expr 6 '*' 7 > made.txt; cat made.txt";
      const run = await bench.runClaude(`TOOL:Bash ${JSON.stringify({ command })}`, { model });
      assert.match(resultOf(run), /\b42\b/);
      assert.equal(await readFile(join(bench.work, 'made.txt'), 'utf8'), '42\n');
      const results = run.events
        .filter(({ type }) => type === 'user')
        .flatMap(({ message }) => message.content)
        .map(({ type, content, is_error }) => ({ type, content, is_error }));
      assert.deepEqual(results, [{ type: 'tool_result', content: '42', is_error: false }]);
      assert.deepEqual(bench.front.requests, [path, path]);
      assert.deepEqual(bench.front.elsewhere, []);
    });
  }
});
