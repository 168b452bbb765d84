import type { BodyOwner, BodyShare, BodyShares } from '../../bounds/body-shares.ts';
import { largeBytes } from '../../http/body/json-body.ts';

/** What a message intake tells of. */
export interface IntakeEvents {
  /** A message has come to be a large one before its end. */
  readonly onLarge: () => void;
  /** The caller has more under way than it may have. */
  readonly onRefused: (error: unknown) => void;
}

/**
 * Counts what a socket's messages take: those that are coming in, and those that wait for their turn. Little of it is not
 * worth counting.
 */
export class MessageIntake {
  readonly #shares: BodyShares;
  readonly #owner: BodyOwner;
  readonly #events: IntakeEvents;
  #unfinished = 0;
  #waiting = 0;
  #counted = 0;
  #share: BodyShare | undefined;

  constructor(shares: BodyShares, owner: BodyOwner, events: IntakeEvents) {
    this.#shares = shares;
    this.#owner = owner;
    this.#events = events;
  }

  /** Bytes have come, of a message whose end has not. */
  came(bytes: number): void {
    const before = this.#unfinished;
    this.#unfinished += bytes;
    if (this.#unfinished <= largeBytes) return;
    if (before <= largeBytes) this.#events.onLarge();
    this.#count();
  }

  /** A message is whole, and waits. */
  whole(bytes: number): void {
    this.#unfinished = 0;
    this.#waiting += bytes;
    this.#count();
  }

  /** A message does not wait any more. */
  done(bytes: number): void {
    this.#waiting -= bytes;
    this.#count();
  }

  /** The socket is closed. */
  close(): void {
    this.#share?.close();
    this.#share = undefined;
  }

  #count(): void {
    const bytes = this.#unfinished + this.#waiting;
    if (bytes <= largeBytes) {
      this.close();
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
