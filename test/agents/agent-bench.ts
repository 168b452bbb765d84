import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach } from 'node:test';
import type { TestGateway } from '../support/gateway.ts';
import { AgentFront } from './agent-front.ts';
import { type AgentRun, runAgent } from './run-agent.ts';

/** What each test of a suite gives an agent: a front before the gateway, a home and a folder to work in. */
export class AgentBench {
  private readonly gateway: () => TestGateway;
  private current: { readonly front: AgentFront; readonly folder: string } | undefined;

  /** To be called in a `describe`. @param gateway the one that runs when the tests do */
  constructor(gateway: () => TestGateway) {
    this.gateway = gateway;
    beforeEach(async () => {
      const folder = await mkdtemp(join(tmpdir(), 'sluice-test-agent-'));
      this.current = { front: await AgentFront.start(gateway().url), folder };
      await mkdir(this.home);
      await mkdir(this.work);
    });
    afterEach(async () => {
      await this.front.close();
      await rm(this.folder, { recursive: true, force: true });
    });
  }

  get front(): AgentFront {
    return this.opened.front;
  }

  /** The folder that the agent works in. */
  get work(): string {
    return join(this.folder, 'work');
  }

  /** Runs Claude Code. @param keyName the variable that it finds its key in */
  runClaude(
    prompt: string,
    { model, keyName = 'ANTHROPIC_AUTH_TOKEN' }: { model: string; keyName?: string },
  ): Promise<AgentRun> {
    const settings = {
      HOME: this.home,
      ANTHROPIC_BASE_URL: this.front.url,
      [keyName]: this.gateway().apiKey,
      ANTHROPIC_MODEL: model,
      ANTHROPIC_SMALL_FAST_MODEL: model,
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      DISABLE_AUTOUPDATER: '1',
      // Root may skip the permission prompts only where it says that it is in a sandbox.
      IS_SANDBOX: '1',
      ...this.front.proxySettings,
    };
    const args = ['-p', prompt, '--output-format', 'stream-json', '--verbose', '--dangerously-skip-permissions'];
    return runAgent('@anthropic-ai/claude-code/cli-wrapper.cjs', args, { folder: this.work, settings });
  }

  /** Runs Codex. @param options.webSocket whether it speaks to the gateway over one */
  async runCodex(prompt: string, options: { model: string; webSocket: boolean }): Promise<AgentRun> {
    const { home, front } = this;
    await writeFile(join(home, 'config.toml'), codexConfiguration({ ...options, baseUrl: `${front.url}/v1` }));
    const settings = { HOME: home, CODEX_HOME: home, SLUICE_KEY: this.gateway().apiKey, ...front.proxySettings };
    const args = ['exec', '--skip-git-repo-check', '--json', '--dangerously-bypass-approvals-and-sandbox', prompt];
    return runAgent('@openai/codex/bin/codex.js', args, { folder: this.work, settings });
  }

  private get home(): string {
    return join(this.folder, 'home');
  }

  private get folder(): string {
    return this.opened.folder;
  }

  private get opened(): { readonly front: AgentFront; readonly folder: string } {
    if (this.current === undefined) throw new Error('No test runs yet.');
    return this.current;
  }
}

function codexConfiguration({
  model,
  webSocket,
  baseUrl,
}: {
  model: string;
  webSocket: boolean;
  baseUrl: string;
}): string {
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
