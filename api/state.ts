import type { DefaultContext, ParameterizedContext } from 'koa';
import type { ApiError } from '../shared/errors.ts';
import type { Caller } from './auth/caller.ts';
import type { Session } from './management/sign-in/session.ts';

/** What middleware leaves on a request for those behind it. */
export interface State {
  /** The id that a job made by this request gets; also the request's own id. */
  jobId: string;
  /** When the request came, in ms of `performance.now()`. */
  startedAt: number;
  caller: Caller;
  /** Who is signed in, on the console's routes. */
  session: Session;
  /** The target of the request is no path, and its path made up. */
  hasOddTarget?: boolean;
  /** Stable name of what answers, for metrics and the access log. */
  endpoint: string;
  /** Where it depends on who serves it which fields are left out: their names, by `serverName`. */
  ignored: ReadonlyMap<string, string> | undefined;
  /** The error it ended with, when that is not the status (a stream's last frame). */
  streamError: ApiError | undefined;
  /** The body that tells an error, where it is not OpenAI's. */
  errorBody: ((error: ApiError, ctx: Context) => unknown) | undefined;
  /** Further facts for the access log: never bodies, prompts or keys. */
  facts: Record<string, string | number | boolean>;
}

export type Context = ParameterizedContext<State, DefaultContext>;
