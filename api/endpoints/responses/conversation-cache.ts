import type { ResponseItem } from '../../../shared/capabilities/response.ts';
import type { MediaExtent } from '../../pipeline/input-media.ts';

/** A response of this connection, with all that it takes to go on from it. */
export interface CachedResponse {
  readonly id: string;
  /** The job's request, its input first: JSON text, or its bytes. */
  readonly request: string | Uint8Array;
  /** Its output items: JSON text of a list. */
  readonly output: string;
  readonly hasMedia: boolean;
  /** The images and documents of its request. */
  readonly media: MediaExtent;
}

/**
 * What the turns of one connection can go on from without a store: the latest response of each lane, in memory only. When
 * they take more than the limit together, the oldest go. https://developers.openai.com/api/docs/guides/websocket-mode
 */
export class ConversationCache {
  readonly #limit: number;
  /** By lane, the oldest first. */
  readonly #latest = new Map<string | undefined, CachedResponse>();

  /** @param limit of all that is kept, in characters or bytes */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** The response with this id, whichever lane it was made in. */
  find(id: string): CachedResponse | undefined {
    for (const response of this.#latest.values()) if (response.id === id) return response;
    return undefined;
  }

  /** Keeps the latest response of a lane, in place of the one before it. */
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

  /** Forgets the response that a turn of its own lane has failed to go on from. One of another lane stays. */
  evict(lane: string | undefined, id: string): void {
    if (this.#latest.get(lane)?.id === id) this.#latest.delete(lane);
  }
}

function sizeOf({ request, output }: CachedResponse): number {
  return request.length + output.length;
}

/** The items of the conversation so far, JSON text of a list: what the response was made from, then what it is. */
export function conversationItems({ request, output }: CachedResponse): string {
  const text = typeof request === 'string' ? request : Buffer.from(request).toString();
  const { input } = JSON.parse(text) as { input: ResponseItem[] };
  const items = [...input, ...(JSON.parse(output) as ResponseItem[])];
  return JSON.stringify(items);
}
