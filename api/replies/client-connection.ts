import type { ServerResponse } from 'node:http';
import { ApiError } from '../../shared/errors.ts';
import { type SwapRemoveMember, SwapRemoveSet } from '../../shared/runtime/swap-remove-set.ts';

/** A file of which nothing moves for so long (ms) is broken off: its storage may stand still, too, not only its client. */
export const stalledMs = 60_000;

/** Requests that must let go when this process stops and its time for finishing them is over. */
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

  /** Requests under way. */
  get size(): number {
    return this.#connections.size;
  }

  /** Calls `listener` when this process begins to stop: what goes on for ever is to come to its end. Returns how to end that. */
  onDrain(listener: () => void): () => void {
    this.#drainListeners.add(listener);
    if (this.#isDraining) listener();
    return () => this.#drainListeners.delete(listener);
  }

  /** This process begins to stop: requests under way may finish. */
  drain(): void {
    this.#isDraining = true;
    for (const listener of [...this.#drainListeners]) listener();
  }

  /** Ends the wait of every request under way. */
  handOver(): void {
    for (const connection of this.#connections) connection.handOver();
  }
}

/**
 * The client's side of one request: ends every wait when the client leaves, or when this process has to let it go. One
 * wait at a time.
 */
export class ClientConnection implements SwapRemoveMember {
  place = 0;
  /** Why waiting is over, once it is. */
  ended: ApiError | undefined;
  readonly #response: ServerResponse;
  readonly #handover: Handover;
  readonly #onClose = (): void => {
    // 'close' comes after every answer; only before its end does it mean that the client left.
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

  /** Whether the client is gone (and not merely to be handed over). */
  get hasLeft(): boolean {
    return this.ended?.code === 'cancelled';
  }

  /**
   * Waits for some work, which goes on whatever becomes of the wait.
   * @param ms the longest wait, after which it rejects with `service_unavailable`
   * @throws ApiError `ended`, or what the work throws.
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

  /** The client has left: every wait ends. */
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
