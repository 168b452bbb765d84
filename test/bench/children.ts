/** The processes that the bench starts: each in its own group, each ended by its id, whatever happens. */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The project's root folder. */
export const projectRoot = join(dirname(fileURLToPath(import.meta.url)), '..', '..');

export interface ChildOptions {
  /** Added to PATH, HOME and NODE_ENV, the only ones of our own environment that a child gets. */
  environment?: Record<string, string>;
  directory?: string;
  /** Where the output goes. */
  logFile: string;
  /** Opens a channel for messages. */
  messages?: boolean;
}

export interface Child {
  name: string;
  pid: number;
  logFile: string;
  process: ChildProcess;
  /** Resolves when the process has ended. */
  ended: Promise<void>;
}

const running = new Set<Child>();
let closed = false;
// Last resort, should the bench itself fail: nothing that it started stays behind.
process.on('exit', () => {
  for (const child of running) killGroup(child.pid);
});

/**
 * Starts a process with as many file descriptors as it may have. Throws when it cannot be started.
 */
export function startChild(name: string, command: string[], options: ChildOptions): Child {
  if (closed) throw new Error('the bench is ending');
  const log = openSync(options.logFile, 'a');
  const { PATH = '', HOME = '' } = process.env;
  const child = spawn('/bin/sh', ['-c', 'ulimit -n 65536 2>/dev/null; exec "$@"', 'sh', ...command], {
    cwd: options.directory ?? projectRoot,
    env: { PATH, HOME, NODE_ENV: 'production', ...options.environment },
    stdio: options.messages ? ['ignore', log, log, 'ipc'] : ['ignore', log, log],
    detached: true,
  });
  closeSync(log);
  if (child.pid === undefined) throw new Error(`${name} could not be started`);
  const { pid } = child;
  const ended = new Promise<void>((resolve) => child.once('close', resolve));
  child.once('exit', () => killGroup(pid));
  const started = { name, pid, logFile: options.logFile, process: child, ended };
  running.add(started);
  void ended.then(() => running.delete(started));
  return started;
}

/** Kills what is left of a child's group: workers that have lost their parent. */
function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // Nothing is left.
  }
}

/** Runs a command to its end; throws its last line when it fails or exceeds the time allowed. */
export async function runToEnd(
  name: string,
  command: string[],
  options: ChildOptions,
  milliseconds: number,
): Promise<void> {
  const child = startChild(name, command, options);
  let expired = false;
  const timer = setTimeout(() => {
    expired = true;
    void endChild(child);
  }, milliseconds);
  await child.ended;
  clearTimeout(timer);
  if (expired) throw new Error(`${name} took longer than ${milliseconds / 60_000} min`);
  if (child.process.exitCode !== 0) throw new Error(`${name} failed: ${lastLines(child, 1)}`);
}

/** Starts one of the bench's own modules (TypeScript), with a channel for messages. */
export function startModule(name: string, file: string, args: string[], logFile: string): Child {
  return startChild(name, [process.execPath, '--import', 'tsx', join(projectRoot, 'test', 'bench', file), ...args], {
    logFile,
    messages: true,
  });
}

/** Ends a process: SIGTERM, and SIGKILL when it has not ended after the time allowed. */
export async function endChild(child: Child, milliseconds = 5_000): Promise<void> {
  if (!running.has(child)) return;
  child.process.kill('SIGTERM');
  const timer = setTimeout(() => child.process.kill('SIGKILL'), milliseconds);
  await child.ended;
  clearTimeout(timer);
}

/** Ends everything that still runs, and lets nothing new be started. */
export async function endChildren(): Promise<void> {
  closed = true;
  await Promise.all([...running].map((child) => endChild(child, 2_000)));
}

/** The next message of a child; throws when it ends first or says nothing for so long. */
export function nextMessage<Message>(child: Child, milliseconds: number): Promise<Message> {
  return new Promise((resolve, reject) => {
    const settle = (action: () => void) => {
      clearTimeout(timer);
      child.process.off('message', onMessage);
      action();
    };
    const onMessage = (message: unknown) => settle(() => resolve(message as Message));
    const timer = setTimeout(
      () => settle(() => reject(new Error(`${child.name} said nothing for ${milliseconds / 1000} s`))),
      milliseconds,
    );
    child.process.on('message', onMessage);
    void child.ended.then(() => settle(() => reject(new Error(`${child.name} ended: ${lastLines(child)}`))));
  });
}

/** Tries until it succeeds; throws the last failure when the child ends or the time is over. */
export async function untilReady(child: Child, milliseconds: number, attempt: () => Promise<void>): Promise<void> {
  const deadline = performance.now() + milliseconds;
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (!running.has(child)) throw new Error(`${child.name} ended: ${lastLines(child)}`);
      if (performance.now() > deadline) throw new Error(`${child.name} was not ready: ${error} ${lastLines(child)}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

function lastLines(child: Child, lines = 5): string {
  return readFileSync(child.logFile, 'utf8').trimEnd().split('\n').slice(-lines).join('\n');
}

/** A port of the loopback that nobody listens on at this moment. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address ? address.port : 0));
    });
  });
}
