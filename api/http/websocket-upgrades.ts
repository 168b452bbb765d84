import { type IncomingMessage, type Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { type WebSocket, WebSocketServer } from 'ws';
import { ApiError } from '../../shared/errors.ts';
import { callerLeft } from '../../shared/jobs/end-errors.ts';
import type { Context } from '../state.ts';

/** The gateway's subprotocol. A client that offers none gets none, and the same messages. */
const subprotocol = 'sluice';

type Handler = (request: IncomingMessage, response: ServerResponse) => unknown;

interface Upgrade {
  readonly socket: Socket;
  /** Data received after the handshake. */
  readonly head: Buffer;
}

const upgrades = new WeakMap<IncomingMessage, Upgrade>();

/**
 * Routes handshakes through the application like other requests: middleware, routes and errors are the same. A refused one
 * gets an ordinary response, after which the connection closes. A route accepts with `acceptSocket`.
 */
export function routeUpgrades(server: Server, handle: Handler): void {
  server.on('upgrade', (request, stream, head) => {
    const socket = stream as Socket;
    // Node has removed its own listener; only the end of the connection matters here.
    socket.on('error', () => undefined);
    upgrades.set(request, { socket, head });
    const response = new ServerResponse(request);
    response.shouldKeepAlive = false;
    response.assignSocket(socket);
    response.once('finish', () => socket.destroySoon());
    handle(request, response);
  });
}

/** Bounds of a client's messages: bytes, and fragments. */
export interface MessageLimits {
  readonly maxPayload: number;
  /** Left out: some thousands. */
  readonly maxFragments?: number;
}

/** WebSocket servers by the limits of their messages. */
const servers = new Map<MessageLimits, WebSocketServer>();

function serverFor(limits: MessageLimits): WebSocketServer {
  const known = servers.get(limits);
  if (known !== undefined) return known;
  const made = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    ...limits,
    // One message in each pass of the event loop: a client may send ten thousand in one packet, and others would wait for all of them.
    allowSynchronousEvents: false,
    handleProtocols: (offered) => (offered.has(subprotocol) ? subprotocol : false),
  });
  servers.set(limits, made);
  return made;
}

/**
 * Refuses requests that are not a WebSocket handshake of version 13.
 * @throws ApiError 426 with headers that name the required ones; 400 when no offered subprotocol is supported.
 */
export function requireHandshake(ctx: Context): void {
  if (!upgrades.has(ctx.req) || ctx.headers['sec-websocket-version'] !== '13') {
    ctx.set({ upgrade: 'websocket', connection: 'upgrade', 'sec-websocket-version': '13' });
    throw new ApiError('upgrade_required', 'This path takes a WebSocket (version 13) only.');
  }
  const offered = ctx.headers['sec-websocket-protocol'];
  // Browsers abort without a reason when none of the subprotocols that they offered is chosen.
  if (offered !== undefined && !offered.split(',').some((name) => name.trim() === subprotocol)) {
    throw new ApiError('invalid_request_error', `Offer the subprotocol "${subprotocol}", or none.`, {
      param: 'Sec-WebSocket-Protocol',
    });
  }
}

/**
 * Responds with 101; from here on the connection is the WebSocket's.
 * @param limits constant ones, the same for all sockets of a path; a longer message closes the socket with 1009, one in more fragments
 * with 1008
 * @throws ApiError 400 for a malformed handshake; `cancelled` when the client has disconnected.
 */
export function acceptSocket(ctx: Context, limits: MessageLimits): { webSocket: WebSocket; socket: Socket } {
  const sockets = serverFor(limits);
  const { socket, head } = upgrades.get(ctx.req) as Upgrade;
  let webSocket: WebSocket | undefined;
  let refusal: Error | undefined;
  // These listeners are called synchronously.
  const onHeaders = (headers: string[]): void => {
    headers.push(`x-request-id: ${ctx.state.headers['x-request-id']}`);
  };
  const onRefused = (error: Error): void => {
    refusal = error;
  };
  sockets.once('headers', onHeaders).once('wsClientError', onRefused);
  sockets.handleUpgrade(ctx.req, socket, head, (accepted) => {
    webSocket = accepted;
  });
  sockets.off('headers', onHeaders).off('wsClientError', onRefused);
  if (refusal !== undefined) throw new ApiError('invalid_request_error', `${refusal.message}.`);
  if (webSocket === undefined) throw callerLeft();
  ctx.res.detachSocket(socket);
  ctx.respond = false;
  ctx.res.statusCode = 101;
  return { webSocket, socket };
}
