import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { databaseSettings } from '../support/database-settings.ts';
import { freePort } from '../support/free-port.ts';
import { builtProduct } from '../support/gateway.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const startDeadlineMs = 120_000;

export interface LauncherOptions {
  dataDir: string;
  settings?: Record<string, string>;
  /** What is started instead of the built launcher. */
  program?: string;
  /** Flags of Node for it. */
  nodeFlags?: readonly string[];
}

/** A launcher process as `npm start` runs it, with its output. */
export interface LauncherProcess {
  readonly pid: number;
  /** All of stdout so far. */
  readonly output: string;
  /** All of stderr so far. */
  readonly errors: string;
  /** Resolves with the exit code; null after a signal. */
  readonly exit: Promise<number | null>;
  /** Resolves when stderr matches. */
  saidOnStderr(pattern: RegExp): Promise<void>;
  /** Resolves when the welcome is printed, with what it names. @throws when the process ends before. */
  welcome(): Promise<{ baseUrl: string; key: string }>;
  signal(name: NodeJS.Signals): void;
  /** Its children now, the oldest first: process id by the name of their module (`api`, `workers`, `sandbox`, `api 2`) or program. */
  children(): Record<string, number>;
}

const alive = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of alive) child.kill('SIGKILL');
});

/** What a program gets of this process's environment: none of our own settings, and what was compiled of it before. */
export function bareEnvironment(): { PATH: string; HOME: string } {
  const { PATH = '', HOME = '', NODE_COMPILE_CACHE } = process.env;
  return { PATH, HOME, ...(NODE_COMPILE_CACHE !== undefined && { NODE_COMPILE_CACHE }) };
}

/** The settings that name a data folder and the database that goes with it. */
async function dataSettings(dataDir: string): Promise<Record<string, string>> {
  const { databaseUrl } = await databaseSettings(dataDir);
  return { SLUICE_DATA_DIR: dataDir, ...(databaseUrl === undefined ? {} : { DATABASE_URL: databaseUrl }) };
}

/** Starts the built launcher, as `npm start` does, on a free port with nothing of our own settings but the suites' database. */
export async function startLauncher({
  dataDir,
  settings,
  program = join(builtProduct, 'launcher/main.js'),
  nodeFlags = [],
}: LauncherOptions): Promise<LauncherProcess> {
  const child = spawn(process.execPath, [...nodeFlags, program], {
    cwd: root,
    env: { ...bareEnvironment(), PORT: String(await freePort()), ...(await dataSettings(dataDir)), ...settings },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  alive.add(child);
  let output = '';
  let errors = '';
  child.stdout.on('data', (chunk: Buffer) => {
    output += chunk.toString();
  });
  child.stderr.on('data', (chunk: Buffer) => {
    errors += chunk.toString();
  });
  const exit = once(child, 'close').then(([code]) => {
    alive.delete(child);
    return code as number | null;
  });
  const said = (stream: NodeJS.ReadableStream, isThere: () => boolean): Promise<void> =>
    new Promise((resolve, reject) => {
      const look = (): void => {
        if (!isThere()) return;
        clearTimeout(deadline);
        stream.off('data', look);
        resolve();
      };
      const fail = (): void => {
        clearTimeout(deadline);
        reject(new Error(`not said; stdout: ${output}\nstderr: ${errors}`));
      };
      const deadline = setTimeout(fail, startDeadlineMs);
      stream.on('data', look);
      void exit.then(fail);
      look();
    });
  return {
    pid: child.pid as number,
    get output() {
      return output;
    },
    get errors() {
      return errors;
    },
    exit,
    saidOnStderr: (pattern) => said(child.stderr, () => pattern.test(errors)),
    welcome: async () => {
      await said(child.stdout, () => output.includes('Stop it with Ctrl-C.'));
      const baseUrl = /Base URL +(\S+)/.exec(output)?.[1] ?? '';
      return { baseUrl, key: /API key +(\S+)/.exec(output)?.[1] ?? '' };
    },
    signal: (name) => child.kill(name),
    children: () => childrenOf(child.pid as number),
  };
}

function childrenOf(pid: number): Record<string, number> {
  const pids = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number);
  const seen: Record<string, number> = {};
  return Object.fromEntries(
    pids.map((child) => {
      const command = readFileSync(`/proc/${child}/cmdline`, 'utf8').replaceAll('\0', ' ');
      const name = /\/(\w+)\/main\.[jt]s/.exec(command)?.[1] ?? /(\w+-server|in-memory-redis)/.exec(command)?.[1];
      if (name === undefined) return [command, child];
      seen[name] = (seen[name] ?? 0) + 1;
      return [seen[name] === 1 ? name : `${name} ${seen[name]}`, child];
    }),
  );
}

/** Whether a process is there. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    // A zombie has ended; only its parent (or nobody, in a container without an init) has not asked for it.
    return !/^State:\tZ/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

interface CommandResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

type RunCommand = (dataDir: string, args: string[], settings?: Record<string, string>) => Promise<CommandResult>;

/** Runs `npm run keys -- …`. */
export const runKeys: RunCommand = (...call) => runCommand('keys', ...call);

/** Runs `npm run users -- …`. */
export const runUsers: RunCommand = (...call) => runCommand('users', ...call);

async function runCommand(
  name: string,
  dataDir: string,
  args: string[],
  settings: Record<string, string> = {},
): Promise<CommandResult> {
  try {
    const command = [join(builtProduct, `launcher/${name}.js`), ...args];
    const env = { ...bareEnvironment(), ...(await dataSettings(dataDir)), ...settings };
    return { code: 0, ...(await promisify(execFile)(process.execPath, command, { cwd: root, env })) };
  } catch (error) {
    return error as CommandResult;
  }
}
