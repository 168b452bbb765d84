import { type ChildProcess, fork, type StdioOptions } from 'node:child_process';
import cluster from 'node:cluster';
import { childEnvironment } from '../shared/config/config.ts';
import { childOptions, endChild, hasEnded, watchChild } from './child-process.ts';

const maxPauseMs = 30_000;
/** After running this long, a child's restart pause is reset to the shortest one. */
const steadyAfterMs = 60_000;

/** A failed start; the message is one sentence for the operator. */
export class StartError extends Error {
  override readonly name = 'StartError';
}

/** A program to run as a child process and keep running. */
export interface Program {
  /** Display name: `api`, `worker`, `sandbox`, `api process 2`. */
  readonly name: string;
  /** Path of the module. */
  readonly file: string;
  readonly args?: readonly string[];
  /** Flags of Node itself. */
  readonly nodeFlags?: string[];
  /** Whether it listens on the same port as others: then this process accepts the connections, and gives each to the next of them. */
  readonly sharesPort?: boolean;
  /** Whether to discard its output. */
  readonly quiet?: boolean;
  /** Settings that replace those of this process. */
  readonly settings: Record<string, string>;
}

/** Sent by api and sandbox over IPC when they accept connections. */
export interface ListeningMessage {
  readonly type: 'listening';
  readonly url?: string;
  readonly port?: number;
}

/**
 * A child process with an IPC channel (so that it notices when this process is gone), restarted with growing pauses whenever
 * it ends unexpectedly.
 */
export class SupervisedChild {
  readonly #warn: (sentence: string) => void;
  #program: Program;
  #child: ChildProcess;
  #startedAt = Date.now();
  #pauseMs = 0;
  #timer: NodeJS.Timeout | undefined;
  #supervised = false;
  #stopping = false;
  #isReady = false;
  #reloadsWhenReady = false;
  #isRestarting = false;

  /** Starts it. `warn` is called for every unexpected end. */
  constructor(program: Program, warn: (sentence: string) => void) {
    this.#program = program;
    this.#warn = warn;
    this.#child = this.#fork();
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /**
   * Resolves when the child reports that it listens.
   * @throws StartError when it ends before, or does not report until the deadline.
   */
  async listening(deadlineMs: number): Promise<ListeningMessage> {
    const child = this.#child;
    const { name } = this.#program;
    return await new Promise((resolve, reject) => {
      const deadline = setTimeout(
        () => reject(new StartError(`The ${name} did not start within ${deadlineMs / 1000} seconds.`)),
        deadlineMs,
      );
      child.on('message', (message: ListeningMessage) => {
        if (message.type !== 'listening') return;
        clearTimeout(deadline);
        resolve(message);
      });
      child.once('exit', (code, signal) => {
        clearTimeout(deadline);
        reject(new StartError(`The ${name} ended while it was starting (${signal ?? `exit code ${code}`}).`));
      });
    });
  }

  /**
   * From now on, restarts the child when it ends. The given settings and arguments apply to the next starts: if others
   * already know an address, the next child must use the same one.
   */
  supervise(next: { args?: readonly string[]; settings?: Record<string, string> } = {}): void {
    const { settings, ...rest } = next;
    this.#program = { ...this.#program, ...rest, settings: { ...this.#program.settings, ...settings } };
    this.#supervised = true;
    if (hasEnded(this.#child)) this.#startAgain();
  }

  /** Makes it reload its settings. While it is starting, the signal is deferred until it is ready: a SIGHUP would end it. */
  reload(): void {
    if (this.#isReady) this.#child.kill('SIGHUP');
    else this.#reloadsWhenReady = true;
  }

  /** Ends it so that a new one replaces it at once, after its program changed. Never rejects. */
  async restart(deadlineMs: number): Promise<void> {
    if (hasEnded(this.#child)) return;
    this.#isRestarting = true;
    await endChild(this.#child, deadlineMs);
  }

  /** Asks it to end, and kills it after the deadline. Never rejects. */
  async stop(deadlineMs: number): Promise<void> {
    this.#stopping = true;
    clearTimeout(this.#timer);
    await endChild(this.#child, deadlineMs);
  }

  #fork(): ChildProcess {
    const child = forkProgram(this.#program);
    watchChild(child);
    this.#startedAt = Date.now();
    this.#isReady = false;
    // Its first message, of any kind, means that it is ready.
    child.once('message', () => {
      this.#isReady = true;
      if (this.#reloadsWhenReady) child.kill('SIGHUP');
      this.#reloadsWhenReady = false;
    });
    child.once('exit', () => {
      this.#isReady = false;
      if (this.#supervised) this.#startAgain();
    });
    // A process that cannot be forked has no exit event: it counts as ended, too.
    child.once('error', () => {
      if (this.#supervised && child.pid === undefined) this.#startAgain();
    });
    return child;
  }

  #startAgain(): void {
    if (this.#stopping) return;
    if (this.#isRestarting) {
      this.#isRestarting = false;
      this.#child = this.#fork();
      return;
    }
    const ranMs = Date.now() - this.#startedAt;
    this.#pauseMs = ranMs >= steadyAfterMs || this.#pauseMs === 0 ? 1000 : Math.min(this.#pauseMs * 2, maxPauseMs);
    const end = this.#child.signalCode ?? `exit code ${this.#child.exitCode}`;
    this.#warn(`The ${this.#program.name} ended unexpectedly (${end}); it starts again in ${this.#pauseMs / 1000} s.`);
    this.#timer = setTimeout(() => {
      this.#child = this.#fork();
    }, this.#pauseMs);
  }
}

function forkProgram({ file, args = [], nodeFlags = [], quiet, sharesPort, settings }: Program): ChildProcess {
  const stdio: StdioOptions = ['ignore', quiet ? 'ignore' : 1, 2, 'ipc'];
  const env = childEnvironment(settings);
  if (!sharesPort) return fork(file, args, { ...childOptions, env, execArgv: nodeFlags, stdio });
  // Not in a group of its own, which `cluster` does not offer: a terminal's Ctrl-C reaches it together with this process, whose
  // own signal it then ignores. It is the first to be stopped anyway.
  cluster.schedulingPolicy = cluster.SCHED_RR;
  cluster.setupPrimary({ exec: file, args: [...args], execArgv: [...nodeFlags], stdio });
  return cluster.fork(env).process;
}
