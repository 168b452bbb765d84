import { type ChildProcess, fork } from 'node:child_process';
import { childEnvironment } from '../shared/config/config.ts';
import { childOptions, endChild, hasEnded, watchChild } from './child-process.ts';

const maxPauseMs = 30_000;
/** A child that ran this long begins again with the shortest pause. */
const steadyAfterMs = 60_000;

/** Something that did not start; the message is one sentence for the operator. */
export class StartError extends Error {
  override readonly name = 'StartError';
}

/** What to run as a child process and keep running. */
export interface Program {
  /** As people know it: `api`, `worker`, `sandbox`. */
  readonly name: string;
  /** Path of the module. */
  readonly file: string;
  readonly args?: readonly string[];
  /** Flags of Node itself. */
  readonly nodeFlags?: string[];
  /** Whether what it prints is not worth showing. */
  readonly quiet?: boolean;
  /** Settings that replace those of this process. */
  readonly settings: Record<string, string>;
}

/** What api and sandbox send over IPC when they accept connections. */
export interface ListeningMessage {
  readonly type: 'listening';
  readonly url?: string;
  readonly port?: number;
}

/**
 * A child process with an IPC channel (so that it notices when this one is gone) that is started again, after a pause
 * that grows, whenever it ends without being asked to.
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

  /** Starts it. `warn` is told of every unexpected end. */
  constructor(program: Program, warn: (sentence: string) => void) {
    this.#program = program;
    this.#warn = warn;
    this.#child = this.#fork();
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** Resolves when the child says that it listens. @throws StartError when it ends before, or says nothing until the deadline. */
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
   * From now on the child is started again when it ends. Given settings and arguments are those of the next starts: where
   * others know an address by now, the next child must come back under it.
   */
  supervise(next: { args?: readonly string[]; settings?: Record<string, string> } = {}): void {
    const { settings, ...rest } = next;
    this.#program = { ...this.#program, ...rest, settings: { ...this.#program.settings, ...settings } };
    this.#supervised = true;
    if (hasEnded(this.#child)) this.#startAgain();
  }

  /** Has it read its settings again. One that is still starting is told when it is ready: before, a SIGHUP would end it. */
  reload(): void {
    if (this.#isReady) this.#child.kill('SIGHUP');
    else this.#reloadsWhenReady = true;
  }

  /** Ends it for another to take its place at once: its program has changed. Never rejects. */
  async restart(deadlineMs: number): Promise<void> {
    if (hasEnded(this.#child)) return;
    this.#isRestarting = true;
    await endChild(this.#child, deadlineMs);
  }

  /** Asks it to end, and ends it after the deadline. Never rejects. */
  async stop(deadlineMs: number): Promise<void> {
    this.#stopping = true;
    clearTimeout(this.#timer);
    await endChild(this.#child, deadlineMs);
  }

  #fork(): ChildProcess {
    const { file, args = [], quiet, settings } = this.#program;
    const child = fork(file, args, {
      ...childOptions,
      env: childEnvironment(settings),
      execArgv: this.#program.nodeFlags ?? [],
      stdio: ['ignore', quiet ? 'ignore' : 1, 2, 'ipc'],
    });
    watchChild(child);
    this.#startedAt = Date.now();
    this.#isReady = false;
    // Its first message says that it is ready, whatever it does.
    child.once('message', () => {
      this.#isReady = true;
      if (this.#reloadsWhenReady) child.kill('SIGHUP');
      this.#reloadsWhenReady = false;
    });
    child.once('exit', () => {
      this.#isReady = false;
      if (this.#supervised) this.#startAgain();
    });
    // A process that cannot be forked at all has no exit: it counts as ended too.
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
