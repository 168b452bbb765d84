import type { DefaultContext, ParameterizedContext } from 'koa';
import type { ApiError } from '../shared/errors.ts';
import type { TraceContext } from '../shared/tracing/trace-context.ts';
import type { Caller } from './auth/caller.ts';
import type { Session } from './management/sign-in/session.ts';

/** State of a request, set by middleware for its successors. */
export interface State {
  /** The id of a job made by this request; also the request's own id. */
  jobId: string;
  /** When the request arrived, in ms of `performance.now()`. */
  startedAt: number;
  caller: Caller;
  /** The user's session, on the console's routes. */
  session: Session;
  /** The target of the request is not a path, and its path made up. */
  hasOddTarget?: boolean;
  /**
   * The gateway's own headers of the response, lower-case, until its head is sent. A stream sends them with its status: set one by one,
   * Node would keep them, and 2 KB for them, as long as it lasts.
   */
  headers: Record<string, string>;
  /** Stable name of the endpoint, for metrics and the access log. */
  endpoint: string;
  /** Ignored fields by `serverName`, if they depend on which vendor serves the request. */
  ignored: ReadonlyMap<string, string> | undefined;
  /** Its answer is a cached one, or that of a job that another request made: it costs nothing. */
  isFree?: true;
  /** The error it ended with, if the status does not show it (a stream's last frame). */
  streamError: ApiError | undefined;
  /** The error body, if it is not OpenAI's. */
  errorBody: ((error: ApiError, ctx: Context) => unknown) | undefined;
  /** The request's span, if it is traced. */
  trace?: TraceContext;
  /** Further facts for the access log: never bodies, prompts or keys. */
  facts: Record<string, string | number | boolean>;
}

export type Context = ParameterizedContext<State, DefaultContext>;
