import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import { TestGateway } from '../support/gateway.ts';
import { AgentFront } from './agent-front.ts';
import { type AgentRun, runAgent } from './run-agent.ts';

// The path that Anthropic's own SDK uses for what it has in beta.
const path = 'POST /v1/messages?beta=true';

describe('@anthropic-ai/claude-code as a client', () => {
  let gateway: TestGateway;
  let front: AgentFront;
  let folder: string;
  before(async () => {
    gateway = await TestGateway.start();
  });
  after(() => gateway.stop());
  beforeEach(async () => {
    front = await AgentFront.start(gateway.url);
    folder = await mkdtemp(join(tmpdir(), 'sluice-test-claude-code-'));
    await mkdir(join(folder, 'home'));
    await mkdir(join(folder, 'work'));
  });
  afterEach(async () => {
    await front.close();
    await rm(folder, { recursive: true, force: true });
  });

  async function runClaude(
    prompt: string,
    { model = 'sandbox-chat', keyName = 'ANTHROPIC_AUTH_TOKEN' }: { model?: string; keyName?: string } = {},
  ): Promise<AgentRun> {
    const settings = {
      HOME: join(folder, 'home'),
      ANTHROPIC_BASE_URL: front.url,
      [keyName]: gateway.apiKey,
      ANTHROPIC_MODEL: model,
      ANTHROPIC_SMALL_FAST_MODEL: model,
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      DISABLE_AUTOUPDATER: '1',
      // Root may skip the permission prompts only where it says that it is in a sandbox.
      IS_SANDBOX: '1',
      ...front.proxySettings,
    };
    const args = ['-p', prompt, '--output-format', 'stream-json', '--verbose', '--dangerously-skip-permissions'];
    return runAgent('@anthropic-ai/claude-code/cli-wrapper.cjs', args, { folder: join(folder, 'work'), settings });
  }

  /** The answer of a run that came to its end without a complaint. */
  function resultOf(run: AgentRun): string {
    const result = run.events.find(({ type }) => type === 'result');
    assert.equal(result?.is_error, false, JSON.stringify(run));
    assert.equal(run.code, 0);
    assert.ok(result.usage.input_tokens > 0 && result.usage.output_tokens > 0, JSON.stringify(run));
    return result.result;
  }

  it('the key may come as an API key, too', async () => {
    const run = await runClaude('Reply with exactly: Hello from Sluice', { keyName: 'ANTHROPIC_API_KEY' });
    assert.equal(resultOf(run), 'Hello from Sluice');
  });

  for (const model of ['sandbox-chat', 'sandbox-reasoning']) {
    it(`a text turn with ${model} ends with the model's answer`, async () => {
      const run = await runClaude('Reply with exactly: Hello from Sluice', { model });
      assert.equal(resultOf(run), 'Hello from Sluice');
      assert.deepEqual(front.requests, [path]);
      assert.deepEqual(front.elsewhere, []);
    });

    it(`a tool turn with ${model} runs the command and tells the model its output`, async () => {
      const command = "expr 6 '*' 7 > made.txt; cat made.txt";
      const run = await runClaude(`TOOL:Bash ${JSON.stringify({ command })}`, { model });
      assert.match(resultOf(run), /\b42\b/);
      assert.equal(await readFile(join(folder, 'work', 'made.txt'), 'utf8'), '42\n');
      const results = run.events
        .filter(({ type }) => type === 'user')
        .flatMap(({ message }) => message.content)
        .map(({ type, content, is_error }) => ({ type, content, is_error }));
      assert.deepEqual(results, [{ type: 'tool_result', content: '42', is_error: false }]);
      assert.deepEqual(front.requests, [path, path]);
      assert.deepEqual(front.elsewhere, []);
    });
  }
});
