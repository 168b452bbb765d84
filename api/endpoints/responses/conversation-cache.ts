import { ApiError } from '../../../shared/errors.ts';
import type { BodyShare } from '../../bounds/body-shares.ts';
import type { MediaExtent } from '../../pipeline/request-extent.ts';
import { type RequestText, textOf } from '../../pipeline/request-text.ts';
import { inputOf, joinedLists } from './earlier-turns.ts';

/** A response of this connection, with the data to continue it. */
export interface CachedResponse {
  readonly id: string;
  /** The job's request, its input first. */
  readonly request: RequestText;
  /** As of `ResponseViewOptions`. */
  readonly afterInput: number;
  /** Its output items: JSON text of a list. */
  readonly output: string;
  readonly hasMedia: boolean;
  /** The images and documents of its request. */
  readonly media: MediaExtent;
  /** As of `ParsedRequest`. */
  readonly affinity: string | undefined;
}

/**
 * The responses that one connection can continue without a store: the latest of each lane, in memory only. Above the size
 * limit the oldest are evicted. https://developers.openai.com/api/docs/guides/websocket-mode
 */
export class ConversationCache {
  readonly #limit: number;
  readonly #share: BodyShare;
  /** By lane, the oldest first. */
  readonly #latest = new Map<string | undefined, CachedResponse>();
  #size = 0;

  /**
   * @param limit of all responses together, in characters or bytes
   * @param share of the memory for the conversations of all connections. What has no room in it is not cached: its client sends
   * the whole conversation again.
   */
  constructor(limit: number, share: BodyShare) {
    this.#limit = limit;
    this.#share = share;
  }

  /** Returns the response with this id, of any lane. */
  find(id: string): CachedResponse | undefined {
    for (const response of this.#latest.values()) if (response.id === id) return response;
    return undefined;
  }

  /** Replaces the latest response of a lane. */
  keep(lane: string | undefined, response: CachedResponse): void {
    this.#remove(lane);
    const size = sizeOf(response);
    for (const oldest of this.#latest.keys()) {
      if (this.#size + size <= this.#limit) break;
      this.#remove(oldest);
    }
    if (this.#size + size > this.#limit || !this.#hasRoom(size)) return;
    this.#latest.set(lane, response);
    this.#size += size;
  }

  /** Counts what a running request keeps for the one that continues it. False if there is no room: then it is not kept. */
  reserve(size: number): boolean {
    return this.#hasRoom(size);
  }

  /** Takes back what was reserved. */
  release(size: number): void {
    this.#share.shrink(size);
  }

  /** Evicts a response that a request of its own lane failed to continue. One of another lane stays. */
  evict(lane: string | undefined, id: string): void {
    if (this.#latest.get(lane)?.id === id) this.#remove(lane);
  }

  /** The connection is closed. */
  close(): void {
    this.#latest.clear();
    this.#share.close();
  }

  #remove(lane: string | undefined): void {
    const kept = this.#latest.get(lane);
    if (kept === undefined) return;
    this.#latest.delete(lane);
    this.#size -= sizeOf(kept);
    this.#share.shrink(sizeOf(kept));
  }

  #hasRoom(size: number): boolean {
    try {
      this.#share.grow(size);
      return true;
    } catch (error) {
      if (error instanceof ApiError) return false;
      throw error;
    }
  }
}

function sizeOf({ request, output }: CachedResponse): number {
  return request.length + output.length;
}

/** The items of the conversation so far, JSON text of a list: the response's input, then its output. None of them is parsed. */
export function conversationItems({ request, afterInput, output }: CachedResponse): string {
  return joinedLists(inputOf(textOf(request), { viewOptions: { afterInput } }), output);
}
