import type { z } from 'zod';
import type { OwnObjectName } from './own-objects.ts';
import type { HeaderName, RequestName } from './request-schemas.ts';
import type { WireObjectName } from './wire-objects.ts';

/** Groups of operations, in the order of the reference. */
export const tags = [
  { name: 'Chat', description: 'Text by the APIs of OpenAI and Anthropic, and embeddings.' },
  { name: 'Responses', description: "OpenAI's Responses API; responses are stored by the gateway." },
  { name: 'Images', description: 'Images are made, edited and varied.' },
  { name: 'Audio', description: 'Speech from text, and text from speech.' },
  { name: 'Videos', description: 'Videos are made in the background: read one until it has completed.' },
  { name: 'Models', description: 'The models that a key may use.' },
  { name: 'Jobs', description: 'Every request is a job, which can be read, followed and cancelled.' },
  { name: 'Account', description: 'What the calling key is, and what its account has used.' },
  { name: 'Gateway', description: 'Public pages, health, metrics and result files.' },
  { name: 'Console', description: "The web console's own API, for a signed-in user." },
  { name: 'Sign-in', description: 'Sign-up, sign-in, passwords and sessions of the console.' },
  { name: 'Playground', description: 'The routes of `/v1` for a signed-in user instead of an API key.' },
  { name: 'Operators', description: 'Accounts, users, keys, jobs and the state of the gateway, for operators.' },
] as const;

export type Tag = (typeof tags)[number]['name'];

/** Who may call: anybody, an API key, a signed-in user, or an operator (a session or an operator key). */
export type Guard = 'public' | 'key' | 'session' | 'operator';

/** Kinds of models in examples. */
type ExampleModel = 'chat' | 'completion' | 'embedding' | 'image' | 'transcription' | 'speech' | 'video';
export type ExampleModels = Readonly<Record<ExampleModel, string>>;

/** A working request. */
interface Example {
  /** Kind of the model that is sent as `model`. */
  readonly model?: ExampleModel;
  readonly json?: Readonly<Record<string, unknown>>;
  /** Fields of a form; a value that starts with `@` is a file of that name, as in curl. */
  readonly form?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string>>;
  /** Output file, for answers that are not text. */
  readonly output?: string;
}

/** The response to a successful request. */
export interface Answer {
  /** 200 by default; 101 is a WebSocket. */
  readonly status?: number;
  readonly description?: string;
  /** A JSON body, if any. */
  readonly json?: OwnObjectName | WireObjectName;
  /** Other media types that it may have. */
  readonly types?: readonly string[];
  /** The JSON body of a 503, if it is not an error. */
  readonly unavailable?: OwnObjectName;
  /** It has an ETag: a client that has it already gets a 304. */
  readonly isCached?: true;
  /** It supports `Range`. */
  readonly inRanges?: true;
}

/** An operation of the HTTP API. */
export interface Operation {
  readonly id: string;
  readonly tag: Tag;
  readonly guard: Guard;
  readonly summary: string;
  readonly description?: string;
  readonly query?: Readonly<Record<string, z.ZodType>>;
  readonly headers?: readonly HeaderName[];
  readonly json?: RequestName;
  readonly form?: RequestName;
  readonly answer: Answer;
  /** It makes a job: with `Prefer: respond-async` it responds with 202 and the job. */
  readonly makesJob?: true;
  /** Errors have Anthropic's shape: always, or if the request has an `anthropic-version`. */
  readonly isAnthropic?: 'always' | 'by_header';
  readonly example?: Example;
}

/** Operations by their routes, as in the router: `GET /v1/jobs/:id`. */
export type Operations = Readonly<Record<string, Operation>>;

/** What an endpoint says of its own operation; the rest is the same for all that make jobs. */
export type EndpointOperation = Omit<Operation, 'guard' | 'headers' | 'makesJob'>;

export const eventStream = 'text/event-stream';

/** Media types of transcripts and translations that are not JSON: text, and both kinds of subtitles. */
export const transcriptTypes = ['text/plain', 'application/x-subrip', 'text/vtt'];
