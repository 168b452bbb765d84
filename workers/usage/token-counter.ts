import { Worker } from 'node:worker_threads';
import { ApiError } from '../../shared/errors.ts';
import { threadFile, threadLimits } from '../../shared/runtime/thread-file.ts';
import type { Exchange, TokenCounts } from './exchange.ts';

/** Time limit (ms) of the thread for one request. */
const taskMs = 30_000;

/** A message to the thread: JSON text of a chat request, or an exchange. */
export type CountTask = string | Exchange;

interface PendingCount {
  readonly task: CountTask;
  readonly resolve: (counted: number | TokenCounts) => void;
  readonly reject: (error: ApiError) => void;
}

/**
 * Counts tokens in a separate thread, one request after the other: loading the tokenizer takes a quarter of a second and 70 MB,
 * and a long request as long again, in which no stream would proceed. The thread starts with the first request; when it crashes
 * or hangs, that request fails and the next one gets a new thread. An idle thread keeps no process alive.
 */
export class TokenCounter {
  readonly #waiting: PendingCount[] = [];
  #thread: Worker | undefined;
  #running: PendingCount | undefined;
  #deadline: NodeJS.Timeout | undefined;

  /**
   * The tokens of a chat request, see `countChatTokens`.
   * @param signal stops waiting.
   * @throws ApiError when the thread failed, or the signal was aborted (then its message is irrelevant).
   */
  async count(request: string, signal: AbortSignal): Promise<number> {
    return (await this.#ask(request, signal)) as number;
  }

  /** The tokens of an exchange, see `countExchange`; otherwise like `count`. */
  async countExchange(exchange: Exchange, signal: AbortSignal): Promise<TokenCounts> {
    return (await this.#ask(exchange, signal)) as TokenCounts;
  }

  async #ask(task: CountTask, signal: AbortSignal): Promise<number | TokenCounts> {
    const given = new ApiError('cancelled', 'The count was given up.');
    if (signal.aborted) throw given;
    let giveUp = (): void => undefined;
    try {
      return await new Promise<number | TokenCounts>((resolve, reject) => {
        const pending: PendingCount = { task, resolve, reject };
        giveUp = () => {
          // A task that the thread already has is counted to its end; the result is discarded.
          const index = this.#waiting.indexOf(pending);
          if (index >= 0) this.#waiting.splice(index, 1);
          reject(given);
        };
        signal.addEventListener('abort', giveUp);
        this.#waiting.push(pending);
        this.#runNext();
      });
    } finally {
      signal.removeEventListener('abort', giveUp);
    }
  }

  #runNext(): void {
    if (this.#running !== undefined) return;
    this.#running = this.#waiting.shift();
    if (this.#running === undefined) return;
    this.#thread ??= this.#startThread();
    const thread = this.#thread;
    thread.ref();
    this.#deadline = setTimeout(() => void thread.terminate(), taskMs);
    thread.postMessage(this.#running.task);
  }

  #startThread(): Worker {
    const thread = new Worker(threadFile('./token-counter-thread', import.meta.url), {
      execArgv: [],
      resourceLimits: threadLimits,
    });
    let cause: unknown = new Error('the thread that counts tokens took too long');
    thread.on('error', (error) => {
      cause = error;
    });
    // Follows 'error', and occurs alone if the thread was terminated for exceeding its time limit.
    thread.on('exit', () => {
      this.#thread = undefined;
      this.#finish((pending) => pending.reject(ApiError.from(cause)));
    });
    thread.on('message', (counted: number | TokenCounts) => this.#finish((pending) => pending.resolve(counted)));
    return thread;
  }

  #finish(settle: (pending: PendingCount) => void): void {
    clearTimeout(this.#deadline);
    const pending = this.#running;
    this.#running = undefined;
    this.#thread?.unref();
    if (pending !== undefined) settle(pending);
    this.#runNext();
  }
}
