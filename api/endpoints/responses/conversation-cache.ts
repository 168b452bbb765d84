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
  /** By lane, the oldest first. */
  readonly #latest = new Map<string | undefined, CachedResponse>();

  /** @param limit of all responses together, in characters or bytes */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Returns the response with this id, of any lane. */
  find(id: string): CachedResponse | undefined {
    for (const response of this.#latest.values()) if (response.id === id) return response;
    return undefined;
  }

  /** Replaces the latest response of a lane. */
  keep(lane: string | undefined, response: CachedResponse): void {
    this.#latest.delete(lane);
    this.#latest.set(lane, response);
    let size = [...this.#latest.values()].reduce((sum, kept) => sum + sizeOf(kept), 0);
    for (const [oldest, kept] of this.#latest) {
      if (size <= this.#limit) break;
      this.#latest.delete(oldest);
      size -= sizeOf(kept);
    }
  }

  /** Evicts a response that a request of its own lane failed to continue. One of another lane stays. */
  evict(lane: string | undefined, id: string): void {
    if (this.#latest.get(lane)?.id === id) this.#latest.delete(lane);
  }
}

function sizeOf({ request, output }: CachedResponse): number {
  return request.length + output.length;
}

/** The items of the conversation so far, JSON text of a list: the response's input, then its output. None of them is parsed. */
export function conversationItems({ request, afterInput, output }: CachedResponse): string {
  return joinedLists(inputOf(textOf(request), { viewOptions: { afterInput } }), output);
}
