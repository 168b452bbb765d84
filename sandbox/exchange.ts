import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ImageStore } from './images/image-store.ts';
import type { Journal } from './journal.ts';
import type { PromptCache } from './prompt-cache.ts';
import type { FaultCounter } from './request-options.ts';
import type { VideoStore } from './videos/video-store.ts';

/** What the calls of one sandbox share. */
export interface SandboxState {
  journal: Journal;
  faults: FaultCounter;
  promptCache: PromptCache;
  images: ImageStore;
  videos: VideoStore;
}

/** One request and the response to write to. The body has been read to its end, except where a handler reads a form. */
export interface Exchange {
  request: IncomingMessage;
  response: ServerResponse;
  /** The body as text; empty for GET and for forms. */
  body: string;
  /** The part of the path that a route leaves open, decoded. */
  id: string;
  query: URLSearchParams;
  state: SandboxState;
}
