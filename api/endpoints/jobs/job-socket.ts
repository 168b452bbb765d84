import type { Middleware } from 'koa';
import { ApiError } from '../../../shared/errors.ts';
import type { ApiMetrics } from '../../../shared/runtime/metrics.ts';
import { type BodyShares, shareOfReply } from '../../bounds/body-shares.ts';
import { readMs } from '../../bounds/bounded-reads.ts';
import type { SocketShares } from '../../bounds/socket-shares.ts';
import type { BaseUrls } from '../../http/request-address.ts';
import { acceptSocket, requireHandshake } from '../../http/websocket-upgrades.ts';
import type { Endpoint } from '../../pipeline/endpoint.ts';
import { type AttachDependencies, attachTo } from '../../pipeline/follow-job.ts';
import type { AnswerReaders } from '../../replies/answer-readers.ts';
import type { ClientConnection } from '../../replies/client-connection.ts';
import { SocketReply } from '../../replies/socket-reply.ts';
import { openingFrame } from '../../replies/sse-reply.ts';
import { type ViewJobDependencies, viewEvents } from '../../replies/view.ts';
import type { Context, State } from '../../state.ts';
import { type FindJobDependencies, findEndpoint, readPosition, withJob } from './jobs.ts';

/** Dependencies of `/v1/jobs/{id}/ws`. */
export interface JobSocketDependencies extends FindJobDependencies, AttachDependencies, ViewJobDependencies {
  readonly sockets: SocketShares;
  readonly baseUrls: BaseUrls;
  readonly readers: AnswerReaders;
  readonly bodies: BodyShares;
  readonly metrics: ApiMetrics;
}

/** Limits of a client's messages: only control frames are expected. */
const messageLimits = { maxPayload: 1024, maxFragments: 1 };

/**
 * `GET /v1/jobs/{id}/ws`: the events of `/v1/jobs/{id}/events` over a WebSocket, for browsers; `?starting_after=` (or
 * `Last-Event-ID`) resumes after the `id` of a message. The key is in the Authorization header, or from a browser in the
 * subprotocols `['sluice', 'openai-insecure-api-key.' + key]`. Clients send nothing, and disconnecting cancels nothing.
 *
 * Errors before the upgrade are HTTP responses: 400, 401, 404, 410 and 426. After it an error is the last message, its
 * `data` in the error shape. Close codes: 1000 after the job's last event, 1001 when this process shuts down (the last
 * message contains the position to resume at), 1008 when the client sent a message (1009: a large one), 1011 when the events
 * cannot be read further.
 */
export function jobSocket(
  services: JobSocketDependencies,
  endpoints: ReadonlyMap<string, Endpoint>,
): Middleware<State> {
  return async (ctx) => {
    ctx.state.endpoint = 'job.ws';
    requireHandshake(ctx);
    const resumeAfter = readPosition(ctx);
    await withJob(services, ctx, ctx.state.caller.account, async (state, connection) => {
      const release = services.sockets.take({ ...ctx.state.caller, job: state.id });
      ctx.res.once('close', release);
      const { view } = findEndpoint(endpoints, state);
      const share = shareOfReply(services.bodies, ctx, state);
      const { viewed, repeatedBytes } = await viewEvents(services, state, services.baseUrls.of(ctx.req), share);
      const reply = new SocketReply({ events: view.stream(viewed), view, resumeAfter, share });
      reply.expect(repeatedBytes);
      if (view.opensAtOnce?.(viewed)) reply.frame(openingFrame);
      const reader = services.readers.open(state, reply);
      try {
        await connection.wait(attachTo(services, state, reader, { resumeAfter, view }), readMs);
        // An ended job is available at once, or has expired, which can still become a status.
        if (state.outcome !== undefined) await connection.wait(reply.started, readMs);
        const { webSocket, socket } = acceptSocket(ctx, messageLimits);
        reply.open(webSocket, socket);
        await untilClosed(reply, connection, state.id);
      } finally {
        reader.close();
        share.close();
        release();
      }
      note(services, ctx, reply);
    });
  };
}

/** Waits for the end of the connection. When this process shuts down first, it hands the client over and closes. */
async function untilClosed(reply: SocketReply, connection: ClientConnection, jobId: string): Promise<void> {
  try {
    await connection.wait(reply.closed);
  } catch {
    const after = reply.position === undefined ? '' : `?starting_after=${reply.position}`;
    reply.handOver(
      new ApiError(
        'service_unavailable',
        `The server is shutting down. The job continues: /v1/jobs/job_${jobId}/ws${after} resumes it.`,
        { reason: 'shutting_down' },
      ),
    );
    await reply.closed;
  }
}

function note(services: JobSocketDependencies, ctx: Context, reply: SocketReply): void {
  ctx.state.streamError = reply.error;
  ctx.state.facts.frames = reply.frames;
  services.metrics.frames.inc(reply.frames);
}
