import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ImageStore } from './images/image-store.ts';
import type { Journal } from './journal.ts';
import type { PromptCache } from './prompt-cache.ts';
import type { FaultCounter } from './request-options.ts';
import type { VideoStore } from './videos/video-store.ts';

/** State shared by the calls of one sandbox. */
export interface SandboxState {
  journal: Journal;
  faults: FaultCounter;
  promptCache: PromptCache;
  images: ImageStore;
  videos: VideoStore;
}

/** One request and its response. The body has been read completely, except if a handler reads a form. */
export interface Exchange {
  request: IncomingMessage;
  response: ServerResponse;
  /** The body as text; empty for GET and for forms. */
  body: string;
  /** The variable part of the path, decoded. */
  id: string;
  query: URLSearchParams;
  state: SandboxState;
}
