import { Worker } from 'node:worker_threads';
import { ApiError, type ErrorData } from '../../../shared/errors.ts';
import { FairQueue, type FairTask } from '../../../shared/fairness/fair-queue.ts';
import { isAlone } from '../../../shared/runtime/collections.ts';
import { threadFile, threadLimits } from '../../../shared/runtime/thread-file.ts';
import { yieldToEventLoop } from '../../../shared/runtime/yield-to-event-loop.ts';
import type { EditedItems, ItemsTask } from '../../endpoints/responses/edit-items.ts';
import { exceededLimit } from '../../http/body/parse-json.ts';
import { leftEarly } from '../../http/body/read-body.ts';
import type { Parse, ParsedRequest } from '../parsed-request.ts';
import { requestBytes } from '../request-text.ts';

/**
 * Maximum bytes and values of bodies that are parsed in the main thread: this takes at most 2 ms, and the way through another
 * thread, with copies of the body there and back, costs as much (benchmark case `large`).
 */
const mainThread = { bytes: 512 * 1024, values: 8192 };
/** Bodies up to this size (bytes) take less time to parse than to look at first. */
export const smallBody = 64 * 1024;

/**
 * Whether a body takes so long to parse that this is left to another thread, and no stream waits for it.
 * @param maxBytes that the main thread parses
 */
export function isLargeBody(body: Uint8Array, maxBytes = mainThread.bytes): boolean {
  if (body.byteLength <= smallBody) return false;
  if (body.byteLength > maxBytes) return true;
  return exceededLimit(body, { nesting: Number.POSITIVE_INFINITY, values: mainThread.values }) !== undefined;
}

/**
 * Parses a body that is neither small nor large: one in each pass of the event loop, so that small requests that have arrived
 * meanwhile do not wait for all of them (benchmark case `neighbour`).
 */
export async function parseAfterYield(parse: Parse, body: Uint8Array): Promise<ParsedRequest> {
  await new Promise<void>((resolve) => yieldToEventLoop(resolve));
  return parse(body);
}

/** What is asked of a body: to parse it as the request of an endpoint, or to read the list of items that it is. */
type BodyQuestion = { readonly endpoint: string } | { readonly items: ItemsTask };

/** What the thread is asked. */
export type LargeBodyTask = BodyQuestion & { readonly body: Uint8Array<ArrayBuffer> };

/** A parsed request. */
interface ParsedBody {
  readonly parsed: Omit<ParsedRequest, 'request'>;
  readonly request: Uint8Array<ArrayBuffer>;
}

/** What the thread answers to each task. */
export type LargeBodyAnswer = ParsedBody | { readonly edited: EditedItems } | { readonly error: ErrorData };

/** What the threads and their queue may take. */
export interface LargeBodyLimits {
  /** Threads at most. */
  readonly threads: number;
  /** Bodies that may wait for a thread, and the bytes they may have together; of more, those of whoever has most go. */
  readonly waiting: number;
  readonly waitingBytes: number;
  /** How long (ms) a thread may take for one body before it is given up. */
  readonly taskMs: number;
}

const defaults: LargeBodyLimits = {
  threads: 2,
  waiting: 64,
  waitingBytes: 256 * 1024 * 1024,
  taskMs: 60_000,
};

interface PendingTask extends FairTask {
  readonly question: BodyQuestion;
  readonly body: Uint8Array;
  readonly resolve: (answer: Exclude<LargeBodyAnswer, { error: ErrorData }>) => void;
  readonly reject: (error: ApiError) => void;
}

/**
 * Parses large bodies in threads. Accounts share their time, and an account has only one body in a thread at a time, which
 * leaves another thread for everybody else. A thread starts with the first body that needs it. When it crashes or hangs, its
 * body gets a 500 and the next one a new thread.
 */
export class LargeBodies {
  readonly #limits: LargeBodyLimits;
  readonly #waiting: FairQueue<PendingTask>;
  readonly #threads: LargeBodyThread[];
  #closed = false;

  constructor(limits: Partial<LargeBodyLimits> = {}) {
    this.#limits = { ...defaults, ...limits };
    this.#waiting = new FairQueue({ tasks: this.#limits.waiting, bytes: this.#limits.waitingBytes });
    const onFinished = (task: PendingTask, ms: number): void => {
      this.#waiting.spend(task.account, ms);
      this.#runNext();
    };
    this.#threads = Array.from({ length: this.#limits.threads }, () => new LargeBodyThread(this.#limits, onFinished));
  }

  /**
   * Parses a body in a thread.
   * @param body is empty afterwards: its memory is moved to the thread
   * @param account of the body
   * @param signal aborts it (the caller disconnected): code `cancelled`.
   * @throws ApiError of the endpoint's own `parse`; 429 when too much of the account waits, 503 when too much waits in
   * total; 500 when its thread failed.
   */
  async parse(endpoint: string, body: Uint8Array, account: string, signal?: AbortSignal): Promise<ParsedRequest> {
    const { parsed, request } = (await this.#ask({ endpoint }, body, account, signal)) as ParsedBody;
    return { ...parsed, request: requestBytes([request]) };
  }

  /** Reads a list of a response's items in a thread, see `editItems`. Otherwise as `parse`. */
  async edit(body: Uint8Array, items: ItemsTask, account: string, signal?: AbortSignal): Promise<EditedItems> {
    const answer = await this.#ask({ items }, body, account, signal);
    return (answer as Extract<LargeBodyAnswer, { edited: EditedItems }>).edited;
  }

  async #ask(
    question: BodyQuestion,
    body: Uint8Array,
    account: string,
    signal: AbortSignal | undefined,
  ): Promise<Exclude<LargeBodyAnswer, { error: ErrorData }>> {
    if (signal?.aborted) throw leftEarly();
    if (this.#closed) throw crowded();
    let giveUp = (): void => undefined;
    try {
      return await new Promise((resolve, reject) => {
        const task: PendingTask = { question, body, account, bytes: body.byteLength, resolve, reject };
        giveUp = () => this.#giveUp(task);
        signal?.addEventListener('abort', giveUp);
        this.#enqueue(task);
        this.#runNext();
      });
    } finally {
      signal?.removeEventListener('abort', giveUp);
    }
  }

  /** Ends the threads. Waiting and running bodies get a 503. */
  async close(): Promise<void> {
    this.#closed = true;
    const error = new ApiError('service_unavailable', 'The server is shutting down. Please try again.', {
      reason: 'shutting_down',
    });
    for (const task of this.#waiting.clear()) task.reject(error);
    await Promise.all(this.#threads.map((thread) => thread.close(error)));
  }

  #enqueue(task: PendingTask): void {
    for (const dropped of this.#waiting.push(task)) {
      const isOwnCrowd = dropped !== task || this.#waiting.has(task.account) || this.#isRunning(task.account);
      dropped.reject(isOwnCrowd ? crowdedByItself() : crowded());
    }
  }

  #giveUp(task: PendingTask): void {
    // A body in a thread is parsed to its end, and its result discarded.
    this.#waiting.remove(task);
    task.reject(leftEarly());
  }

  #isRunning(account: string): boolean {
    return this.#threads.some((thread) => thread.account === account);
  }

  #runNext(): void {
    for (const thread of this.#threads) {
      if (thread.account !== undefined) continue;
      const task = this.#waiting.take((account) => !this.#isRunning(account));
      if (!task) return;
      thread.run(task);
    }
  }
}

/** One thread, with one body at a time. */
class LargeBodyThread {
  readonly #limits: LargeBodyLimits;
  readonly #onFinished: (task: PendingTask, ms: number) => void;
  #thread: Worker | undefined;
  #running: PendingTask | undefined;
  #runningSince = 0;
  #deadline: NodeJS.Timeout | undefined;

  /** @param onFinished called with each body, and its duration (ms), once the thread is free again */
  constructor(limits: LargeBodyLimits, onFinished: (task: PendingTask, ms: number) => void) {
    this.#limits = limits;
    this.#onFinished = onFinished;
  }

  /** The account of its body; undefined while it is free. */
  get account(): string | undefined {
    return this.#running?.account;
  }

  run(task: PendingTask): void {
    this.#running = task;
    this.#runningSince = performance.now();
    this.#thread ??= this.#start();
    const thread = this.#thread;
    this.#deadline = setTimeout(() => void thread.terminate(), this.#limits.taskMs);
    // Moved where nothing else lies in its memory.
    const body = isAlone(task.body) ? task.body : new Uint8Array(task.body);
    thread.postMessage({ ...task.question, body } satisfies LargeBodyTask, [body.buffer]);
  }

  async close(error: ApiError): Promise<void> {
    this.#running?.reject(error);
    await this.#thread?.terminate();
  }

  #start(): Worker {
    const thread = new Worker(threadFile('./large-body-thread', import.meta.url), {
      execArgv: [],
      resourceLimits: threadLimits,
    });
    let cause: unknown = new Error('the thread for large bodies took too long');
    thread.on('error', (error) => {
      cause = error;
    });
    // Follows 'error', or is the only event when the thread was terminated for a timeout.
    thread.on('exit', () => {
      this.#thread = undefined;
      this.#finish((task) => task.reject(ApiError.from(cause)));
    });
    thread.on('message', (answer: LargeBodyAnswer) => {
      this.#finish((task) => {
        if ('error' in answer) task.reject(ApiError.fromData(answer.error));
        else task.resolve(answer);
      });
    });
    return thread;
  }

  #finish(settle: (task: PendingTask) => void): void {
    clearTimeout(this.#deadline);
    const task = this.#running;
    this.#running = undefined;
    if (!task) return;
    settle(task);
    this.#onFinished(task, performance.now() - this.#runningSince);
  }
}

function crowded(): ApiError {
  return new ApiError('service_unavailable', 'Too many large requests are waiting. Please try again.', {
    reason: 'large_bodies',
  });
}

function crowdedByItself(): ApiError {
  return new ApiError('rate_limit_exceeded', 'Too many large requests of this account are waiting. Please try again.', {
    reason: 'large_bodies',
    retryAfterMs: 1000,
  });
}
