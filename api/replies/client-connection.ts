import type { ServerResponse } from 'node:http';
import { ApiError } from '../../shared/errors.ts';
import { type SwapRemoveMember, SwapRemoveSet } from '../../shared/runtime/collections.ts';

/** Time (ms) without progress after which sending a file is aborted: its storage may stall, too, not only its client. */
export const stalledMs = 60_000;

/** Requests to be released when this process stops and the time to finish them is up. */
export class Handover {
  readonly #connections = new SwapRemoveSet<ClientConnection>();
  readonly #drainListeners = new Set<() => void>();
  #isDraining = false;

  add(connection: ClientConnection): void {
    this.#connections.add(connection);
  }

  delete(connection: ClientConnection): void {
    this.#connections.delete(connection);
  }

  /** Number of running requests. */
  get size(): number {
    return this.#connections.size;
  }

  /** Calls `listener` when this process starts to stop, so that endless work ends. Returns a function that unsubscribes. */
  onDrain(listener: () => void): () => void {
    this.#drainListeners.add(listener);
    if (this.#isDraining) listener();
    return () => this.#drainListeners.delete(listener);
  }

  /** This process starts to stop: running requests may finish. */
  drain(): void {
    this.#isDraining = true;
    for (const listener of [...this.#drainListeners]) listener();
  }

  /** Ends the wait of every running request. */
  handOver(): void {
    for (const connection of this.#connections) connection.handOver();
  }
}

/**
 * The client's side of one request: ends every wait when the client disconnects, or when this process has to release it.
 * Supports one wait at a time.
 */
export class ClientConnection implements SwapRemoveMember {
  index = 0;
  /** Why waiting has ended, once it has. */
  ended: ApiError | undefined;
  readonly #response: ServerResponse;
  readonly #handover: Handover;
  readonly #onClose = (): void => {
    // 'close' follows every response; only before the response's end does it mean that the client disconnected.
    if (!this.#response.writableFinished) this.leave();
  };
  #reject: ((error: ApiError) => void) | undefined;

  constructor(response: ServerResponse, handover: Handover) {
    this.#response = response;
    this.#handover = handover;
    response.once('close', this.#onClose);
    handover.add(this);
    if (response.destroyed) this.#onClose();
  }

  /** Whether the client has disconnected (rather than been handed over). */
  get hasLeft(): boolean {
    return this.ended?.code === 'cancelled';
  }

  /**
   * Waits for some work, which continues even if the wait ends.
   * @param ms maximum wait, after which it rejects with `service_unavailable`
   * @throws ApiError `ended`, or the work's error.
   */
  wait<T>(work: Promise<T>, ms?: number): Promise<T> {
    if (this.ended !== undefined) return Promise.reject(this.ended);
    return new Promise<T>((resolve, reject) => {
      const timer = ms === undefined ? undefined : setTimeout(() => fail(late()), ms);
      const over = (): void => {
        clearTimeout(timer);
        if (this.#reject === fail) this.#reject = undefined;
      };
      const fail = (error: unknown): void => {
        over();
        reject(error);
      };
      this.#reject = fail;
      work.then((value) => {
        over();
        resolve(value);
      }, fail);
    });
  }

  /** The client has disconnected: every wait ends. */
  leave(): void {
    this.#end(new ApiError('cancelled', 'The caller left.'));
  }

  handOver(): void {
    this.#end(
      new ApiError('service_unavailable', 'The server is shutting down. Retry the request.', {
        retryAfterMs: 1000,
      }),
    );
  }

  close(): void {
    this.#response.off('close', this.#onClose);
    this.#handover.delete(this);
  }

  #end(error: ApiError): void {
    if (this.ended !== undefined) return;
    this.ended = error;
    this.#reject?.(error);
  }
}

function late(): ApiError {
  return new ApiError('service_unavailable', 'The queue is unavailable. Try again later.', { retryAfterMs: 2000 });
}
