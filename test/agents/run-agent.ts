import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

/** A run of an agent that has ended. */
export interface AgentRun {
  readonly code: number | null;
  /** The JSON lines that it printed. */
  readonly events: readonly AgentEvent[];
  /** What it wrote to stderr: for a failed test's message. */
  readonly errors: string;
}

/** What an agent prints, one per line; its fields depend on the type. */
export interface AgentEvent {
  readonly type: string;
  // biome-ignore lint/suspicious/noExplicitAny: each agent has its own
  readonly [field: string]: any;
}

const runDeadlineMs = 120_000;

const running = new Set<ChildProcess>();
// Last resort, should a test end first: no agent outlives its test process.
process.on('exit', () => {
  for (const child of running) killGroup(child);
});

/**
 * Runs an agent to its end, in an environment that holds `settings` and the PATH only.
 * @param script its launcher, inside `test/agents/node_modules`
 * @throws Error when it has not ended after two minutes; it is killed then, with all that it has started.
 */
export async function runAgent(
  script: string,
  args: readonly string[],
  options: { folder: string; settings: Record<string, string> },
): Promise<AgentRun> {
  const launcher = fileURLToPath(new URL(`node_modules/${script}`, import.meta.url));
  const child = spawn(process.execPath, [launcher, ...args], {
    cwd: options.folder,
    env: { PATH: process.env.PATH, ...options.settings },
    // Both launchers start the agent itself as a child: a group of its own can be killed whole.
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  running.add(child);
  const output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => {
      output[name] += text;
    });
  }
  try {
    const [code] = await once(child, 'close', { signal: AbortSignal.timeout(runDeadlineMs) });
    return { code, events: output.stdout.split('\n').filter(Boolean).map(readEvent), errors: output.stderr };
  } catch (error) {
    throw new Error(`The agent did not end in time: ${output.stdout}\n${output.stderr}`, { cause: error });
  } finally {
    killGroup(child);
    running.delete(child);
  }
}

function readEvent(line: string): AgentEvent {
  return JSON.parse(line) as AgentEvent;
}

function killGroup(child: ChildProcess): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch {
    // Nothing of the group is left.
  }
}
