import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Journal } from './journal.ts';
import type { PromptCache } from './prompt-cache.ts';
import type { FaultCounter } from './request-options.ts';

/** What the calls of one sandbox share. */
export interface SandboxState {
  journal: Journal;
  faults: FaultCounter;
  promptCache: PromptCache;
}

/** One request, its body read to the end, and the response to write to. */
export interface Exchange {
  request: IncomingMessage;
  response: ServerResponse;
  /** The body as text; empty for GET. */
  body: string;
  /** The part of the path that a route leaves open, decoded. */
  id: string;
  query: URLSearchParams;
  state: SandboxState;
}
