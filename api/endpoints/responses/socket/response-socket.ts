import type { Middleware } from 'koa';
import { ApiError } from '../../../../shared/errors.ts';
import type { BodyGate } from '../../../admission/body-gate.ts';
import { type Preferences, readPreferences } from '../../../admission/preferences.ts';
import type { BodyShares } from '../../../bounds/body-shares.ts';
import type { SocketShares } from '../../../bounds/socket-shares.ts';
import { largestBody } from '../../../http/body/read-body.ts';
import { acceptSocket, requireHandshake } from '../../../http/websocket-upgrades.ts';
import { isLargeBody, type LargeBodies } from '../../../pipeline/large-bodies/large-bodies.ts';
import { errorMessage } from '../../../replies/response-socket-reply.ts';
import { closeCodes, SocketConnection } from '../../../replies/socket-connection.ts';
import type { Context, State } from '../../../state.ts';
import { MessageIntake } from '../../messages/message-intake.ts';
import { ConversationCache } from '../conversation-cache.ts';
import { type ParsedMessage, parseSocketMessage, refusedMessage } from './parse-socket-message.ts';
import { ResponseSession, type SessionWork, sessionLimits } from './response-session.ts';
import { ResponseTurn } from './response-turn.ts';
import type { ResponsesEndpoint, ResponseTurnDependencies, TurnContext } from './turn-context.ts';

/** Dependencies of the socket of responses. */
export interface ResponseSocketDependencies extends ResponseTurnDependencies {
  readonly sockets: SocketShares;
  readonly bodies: BodyShares;
  readonly conversations: BodyShares;
  readonly bodyGate: BodyGate;
  readonly largeBodies: LargeBodies;
}

/**
 * `GET /v1/responses` with a WebSocket handshake: OpenAI's WebSocket mode
 * (https://developers.openai.com/api/docs/guides/websocket-mode). The client sends `response.create` (with the fields of
 * `POST /v1/responses` beside it; `stream_id` names a lane, `generate: false` only warms up) and `response.cancel`; it gets
 * the events of the SSE view, a text message each. The latest response of each lane can be continued without a store.
 *
 * The key is in the Authorization header, or from a browser in the subprotocols `['sluice', 'openai-insecure-api-key.' +
 * key]`; it is checked again for every request. Disconnecting cancels running requests, unless `X-Sluice-On-Disconnect` or
 * the key overrides that. Errors before the upgrade are HTTP responses (400, 401, 403, 426), later ones messages of type
 * `error`. Close codes: 1000 after the idle time, 1001 after sixty minutes or when this process shuts down (both announced
 * before), 1009 when a message is longer than the largest body.
 *
 * @param endpoint of `POST /v1/responses`
 */
export function responseSocket(services: ResponseSocketDependencies, endpoint: ResponsesEndpoint): Middleware<State> {
  return async (ctx) => {
    ctx.state.endpoint = 'responses.ws';
    requireHandshake(ctx);
    const preferences = readSocketPreferences(ctx);
    const release = services.sockets.take(ctx.state.caller);
    ctx.res.once('close', release);
    const { webSocket, socket } = acceptSocket(ctx, messageLimits);
    const connection = new SocketConnection(webSocket, socket);
    const cache = new ConversationCache(largestBody, services.conversations.open(ctx.state.caller));
    // Each request temporarily adds listeners to it.
    ctx.res.setMaxListeners(2 * sessionLimits.running);
    const left = new AbortController();
    const intake = new MessageIntake(services.bodies, ctx.state.caller, {
      onLarge: () => {
        // While requests run, their released holds may pay for it: it is checked again when the message is complete.
        if (!session.isBusy) services.bodyGate.assertMayBegin(ctx.state.caller).catch(refuse);
      },
      onRefused: (error) => refuse(error),
    });
    const refuse = (error: unknown): void => cutOff(connection, ApiError.from(error));
    const work = sessionWork({ services, endpoint, ctx, preferences, connection, cache }, intake, left.signal);
    const session = new ResponseSession(connection, work, { ...sessionLimits, idleMs: services.config.socketIdleMs });
    // Before the socket's own listener, which emits the messages that end with these bytes.
    socket.prependListener('data', (chunk: Buffer) => intake.came(chunk));
    webSocket.on('message', (data, isBinary) => {
      intake.whole((data as Buffer).length);
      session.take(data as Buffer, isBinary);
    });
    const stopListening = services.handover.onDrain(() => session.end(closing()));
    await connection.closed;
    stopListening();
    left.abort();
    intake.close();
    cache.close();
    release();
  };
}

/** Sends the reason and stops reading: further data would be buffered up to the end of its message. */
function cutOff(connection: SocketConnection, error: ApiError): void {
  connection.send([errorMessage(error)]);
  connection.cut(closeCodes.policyViolation, error.code);
}

const messageLimits = { maxPayload: largestBody };

/** Longer messages (bytes) are parsed only if their caller could have a request admitted. */
const largeMessage = 256 * 1024;

function sessionWork(
  context: TurnContext & { readonly services: ResponseSocketDependencies },
  intake: MessageIntake,
  left: AbortSignal,
): SessionWork {
  const { services, ctx } = context;
  ctx.state.facts.turns = 0;
  return {
    parse: (message, isBinary) => {
      if (isBinary) return refusedMessage(new ApiError('invalid_request_error', 'Send text messages: JSON in UTF-8.'));
      if (!isLargeBody(message, largeMessage)) return parseSocketMessage(message);
      const { caller } = ctx.state;
      const parsing = services.bodyGate
        .assertMayBegin(caller)
        .then(() => services.largeBodies.parse('responses.ws', message, caller.account, left))
        .then((parsed) => parsed as ParsedMessage);
      return parsing.catch((error: unknown) => refusedMessage(ApiError.from(error)));
    },
    onAccepted: (bytes) => intake.done(bytes),
    openTurn: (envelope) => {
      ctx.state.facts.turns = Number(ctx.state.facts.turns) + 1;
      return new ResponseTurn(context, envelope);
    },
    onFault: (error) => services.log.error({ err: error, socket: ctx.state.jobId }, 'response socket failed'),
  };
}

/** @throws ApiError 400 for headers without a meaning for a socket's many requests. */
function readSocketPreferences(ctx: Context): Preferences {
  const preferences = readPreferences(ctx.headers);
  // A quote that is not given would be a call that is paid for.
  const isPreferred = preferences.respondAsync || preferences.quote;
  const refused = (preferences.idempotencyKey !== undefined && 'Idempotency-Key') || (isPreferred && 'Prefer');
  if (!refused) return preferences;
  throw new ApiError('invalid_request_error', `The header ${refused} cannot be used with a WebSocket.`, {
    param: refused,
  });
}

function closing(): ApiError {
  return new ApiError('service_unavailable', 'The server is shutting down. Open another WebSocket.', {
    reason: 'shutting_down',
  });
}
