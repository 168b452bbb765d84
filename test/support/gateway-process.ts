import { type ChildProcess, fork } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { basename, join } from 'node:path';

/** A dozen that start together on two busy cores take half a minute, and over one beside as much other work. One that fails ends. */
const startDeadlineMs = 180_000;

/**
 * Where the answers of the integration and console suites are kept for `check-answers.ts`, which holds them against the gateway's
 * own OpenAPI document once all suites have run; `test/run.mjs` names the folder.
 */
const answersFolder = /\/test\/(integration|console)\//.test(process.argv[1] ?? '')
  ? process.env.SLUICE_TEST_ANSWERS
  : undefined;
const keepAnswers = new URL('./keep-answers.mjs', import.meta.url).href;

/** One process of the gateway under test: the built code, as it runs in production. */
export interface GatewayProcess {
  readonly child: ChildProcess;
  readonly pid: number;
  /** Everything it wrote so far (log lines are buffered for up to a second). */
  output(): string;
  /** SIGTERM, then waits for the exit; answers its code. */
  stop(): Promise<number | null>;
  /** SIGKILL. */
  kill(): Promise<void>;
}

/** An api process and where it listens. */
export interface ApiProcess extends GatewayProcess {
  /** `http://127.0.0.1:port`, without `/v1`. */
  readonly url: string;
}

/** Lines of a process's log with this message. */
export function linesOf(process: GatewayProcess, message: string): Record<string, number>[] {
  const lines = process.output().split('\n');
  return lines.filter((line) => line.includes(`"msg":"${message}"`)).map((line) => JSON.parse(line));
}

/** What a process is started with. */
interface ProcessStart {
  /** Path of its module. */
  readonly program: string;
  readonly words: readonly string[];
  readonly settings: NodeJS.ProcessEnv;
  readonly nodeFlags: readonly string[];
  /** Whether its answers are kept, if those of its suite are. */
  readonly keepsAnswers: boolean;
}

/** Starts a process and waits for its word that it is ready. */
export async function startProcess({
  program,
  words,
  settings,
  nodeFlags,
  keepsAnswers,
}: ProcessStart): Promise<GatewayProcess> {
  const isKept = keepsAnswers && answersFolder !== undefined;
  const answersFile = isKept && join(answersFolder, `${basename(process.argv[1] as string)}-${randomUUID()}.jsonl`);
  const child = fork(program, words, {
    env: { ...settings, ...(answersFile && { TEST_ANSWERS: answersFile }) },
    silent: true,
    execArgv: [...nodeFlags, ...(isKept ? ['--import', keepAnswers] : [])],
  });
  let output = '';
  const keep = (chunk: Buffer): void => {
    output = (output + chunk.toString()).slice(-200_000);
  };
  child.stdout?.on('data', keep);
  child.stderr?.on('data', keep);
  const exited = once(child, 'exit');
  const ready = once(child, 'message', { signal: AbortSignal.timeout(startDeadlineMs) });
  ready.catch(() => child.kill('SIGKILL'));
  await Promise.race([ready, exited.then(() => Promise.reject(new Error(`${program} ended at once: ${output}`)))]);
  const end = async (signal: NodeJS.Signals): Promise<number | null> => {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill('SIGCONT');
      child.kill(signal);
      await exited;
    }
    return child.exitCode;
  };
  return {
    child,
    pid: child.pid as number,
    output: () => output,
    stop: () => end('SIGTERM'),
    kill: async () => {
      await end('SIGKILL');
    },
  };
}
