import type { BodyOwner, BodyShare, BodyShares } from '../../bounds/body-shares.ts';
import { largeBytes } from '../../http/body/read-body.ts';
import { WebSocketFragments } from '../../http/websocket-fragments.ts';

/** Callbacks of a message intake. */
export interface IntakeEvents {
  /** An unfinished message has become a large one. */
  readonly onLarge: () => void;
  /** The caller has too much data in flight. */
  readonly onRefused: (error: unknown) => void;
}

/**
 * Counts what a socket's messages take in memory: incoming ones, and those that wait for their execution. Small amounts are not
 * counted.
 */
export class MessageIntake {
  readonly #shares: BodyShares;
  readonly #owner: BodyOwner;
  readonly #events: IntakeEvents;
  readonly #fragments = new WebSocketFragments();
  #unfinished = 0;
  #waiting = 0;
  #counted = 0;
  #share: BodyShare | undefined;
  #isClosed = false;

  constructor(shares: BodyShares, owner: BodyOwner, events: IntakeEvents) {
    this.#shares = shares;
    this.#owner = owner;
    this.#events = events;
  }

  /** Counts what was read of the connection. */
  came(chunk: Buffer): void {
    const before = this.#incoming;
    this.#unfinished += chunk.length;
    this.#fragments.read(chunk);
    if (this.#incoming <= largeBytes) return;
    if (before <= largeBytes) this.#events.onLarge();
    this.#count();
  }

  /** A message is complete, and waits. */
  whole(bytes: number): void {
    this.#unfinished = 0;
    this.#waiting += bytes;
    this.#count();
  }

  /** A message no longer waits. */
  done(bytes: number): void {
    this.#waiting -= bytes;
    this.#count();
  }

  /** The socket is closed. Messages that are done later have nothing to release. */
  close(): void {
    this.#isClosed = true;
    this.#release();
  }

  get #incoming(): number {
    return this.#unfinished + this.#fragments.overhead;
  }

  #release(): void {
    this.#share?.close();
    this.#share = undefined;
  }

  #count(): void {
    if (this.#isClosed) return;
    const bytes = this.#incoming + this.#waiting;
    if (bytes <= largeBytes) {
      this.#release();
      this.#counted = 0;
      return;
    }
    try {
      this.#share ??= this.#shares.open(this.#owner);
      if (bytes < this.#counted) this.#share.shrink(this.#counted - bytes);
      else this.#share.grow(bytes - this.#counted);
      this.#counted = bytes;
    } catch (error) {
      this.#events.onRefused(error);
    }
  }
}
