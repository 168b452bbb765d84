import { newJobId } from '../../../../shared/ids.ts';
import type { AdmitJobDependencies } from '../../../admission/admit-job.ts';
import type { Preferences } from '../../../admission/preferences.ts';
import type { CallerDirectory } from '../../../auth/authenticate.ts';
import type { BusyLoop } from '../../../bounds/busy-loop.ts';
import type { DescribeJobDependencies } from '../../../pipeline/describe-job.ts';
import type { Endpoint, ResolveDependencies } from '../../../pipeline/endpoint.ts';
import type { AnswerReaders } from '../../../replies/answer-readers.ts';
import type { LeaveJobDependencies } from '../../../replies/cancel-job.ts';
import type { Handover, WaitLimitsDependencies } from '../../../replies/client-connection.ts';
import type { OpenReplyDependencies } from '../../../replies/open-reply.ts';
import type { SocketConnection } from '../../../replies/socket-connection.ts';
import type { ViewedJob } from '../../../replies/view.ts';
import type { Context } from '../../../state.ts';
import type { ConversationCache } from '../conversation-cache.ts';
import type { ParsedResponse } from '../earlier-turns.ts';
import type { ResponseRequirements, ResponseViewOptions } from '../parse-response.ts';

/** Dependencies of a request on a socket. */
export interface ResponseTurnDependencies
  extends ResolveDependencies,
    DescribeJobDependencies,
    AdmitJobDependencies,
    OpenReplyDependencies,
    WaitLimitsDependencies,
    LeaveJobDependencies {
  readonly handover: Handover;
  readonly callers: CallerDirectory;
  readonly busyLoop: Pick<BusyLoop, 'assertRoom'>;
  readonly readers: AnswerReaders;
}

/** That of `POST /v1/responses`. */
export type ResponsesEndpoint = Endpoint<ResponseRequirements, ResponseViewOptions>;

/** The context shared by the requests of one response socket. */
export interface TurnContext {
  readonly services: ResponseTurnDependencies;
  readonly endpoint: ResponsesEndpoint;
  /** Of the handshake. */
  readonly ctx: Context;
  readonly preferences: Preferences;
  readonly connection: SocketConnection;
  readonly cache: ConversationCache;
}

/** Derives a context with a separate state from the handshake's, so that each request has an id. */
export function contextOfTurn(ctx: Context): Context {
  const { caller, session } = ctx.state;
  const turn = Object.create(ctx) as Context;
  turn.state = {
    jobId: newJobId(),
    headers: {},
    startedAt: performance.now(),
    caller,
    session,
    endpoint: 'responses',
    streamError: undefined,
    ignored: undefined,
    errorBody: undefined,
    facts: { socket: ctx.state.jobId },
  };
  return turn;
}

/** The job of a turn for its view. */
export function viewedTurn(
  { ctx, services }: TurnContext,
  { id, model, createdAt }: Pick<ViewedJob, 'id' | 'model' | 'createdAt'>,
  { viewOptions }: Pick<ParsedResponse, 'viewOptions'>,
): ViewedJob<ResponseViewOptions> {
  const { resultLinks, config, baseUrls } = services;
  const { account } = ctx.state.caller;
  const baseUrl = baseUrls.of(ctx.req);
  const link = (file: string): string => resultLinks.link(baseUrl, { account, file }, createdAt + config.resultMs);
  return { id, model, createdAt, viewOptions, link };
}
