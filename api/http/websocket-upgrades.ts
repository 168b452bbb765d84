import { IncomingMessage, type Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { type WebSocket, WebSocketServer } from 'ws';
import { ApiError } from '../../shared/errors.ts';
import type { Context } from '../state.ts';

/** Paths that accept a WebSocket; each has its route in app.ts. */
const socketPaths: readonly RegExp[] = [/^\/v1\/jobs\/[^/?]+\/ws\/?(\?|$)/i, /^\/v1\/responses\/?(\?|$)/i];

/** The gateway's subprotocol. A client that offers none gets none, and the same messages. */
const subprotocol = 'sluice';

/**
 * The server's request class. Once a server listens for upgrades, Node treats every request with an `Upgrade` header as one
 * and reads no body of it, even if the client merely offers HTTP/2 (`Upgrade: h2c`, as Java's HttpClient does). So the flag
 * is set only for a WebSocket's handshake on a path that accepts one; the header is otherwise ignored (RFC 9110, section
 * 7.8). The path is the corrected one.
 */
export class UpgradableRequest extends IncomingMessage {
  // Not private fields: Node's constructor sets `url` and `upgrade` before such fields exist.
  declare private asked: boolean | null;
  declare private target: string;

  /** The target with the corrected path: no code sees the original. */
  // @ts-expect-error: Node's type has it as a property.
  override get url(): string {
    return this.target;
  }

  override set url(target: string) {
    this.target = gatewayPath(target);
  }

  get upgrade(): boolean {
    return this.asked === true && isHandshake(this);
  }

  set upgrade(asked: boolean | null) {
    this.asked = asked;
  }
}

function isHandshake({ method, headers, url = '' }: IncomingMessage): boolean {
  return (
    method === 'GET' && headers.upgrade?.toLowerCase() === 'websocket' && socketPaths.some((path) => path.test(url))
  );
}

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

/** WebSocket servers by maximum message size (bytes). */
const servers = new Map<number, WebSocketServer>();

function serverFor(maxPayload: number): WebSocketServer {
  const known = servers.get(maxPayload);
  if (known !== undefined) return known;
  const made = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    maxPayload,
    handleProtocols: (offered) => (offered.has(subprotocol) ? subprotocol : false),
  });
  servers.set(maxPayload, made);
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
 * @param maxPayload maximum size of a client's message, in bytes; a longer one closes the socket with 1009
 * @throws ApiError 400 for a malformed handshake; `cancelled` when the client has disconnected.
 */
export function acceptSocket(ctx: Context, maxPayload: number): { webSocket: WebSocket; socket: Socket } {
  const sockets = serverFor(maxPayload);
  const { socket, head } = upgrades.get(ctx.req) as Upgrade;
  let webSocket: WebSocket | undefined;
  let refusal: Error | undefined;
  // These listeners are called synchronously.
  const onHeaders = (headers: string[]): void => {
    headers.push(`x-request-id: ${ctx.res.getHeader('x-request-id')}`);
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
  if (webSocket === undefined) throw new ApiError('cancelled', 'The caller left.');
  ctx.res.detachSocket(socket);
  ctx.respond = false;
  ctx.res.statusCode = 101;
  return { webSocket, socket };
}

/** First segments of the routes under `/v1`. */
export const resources = [
  ...['audio', 'chat', 'completions', 'embeddings', 'images', 'jobs', 'key', 'messages', 'models', 'responses'],
  ...['usage', 'videos'],
] as const;

/** A mistyped path of the API under a base URL: that of another gateway, with `/v1` twice, or without it. */
const slipped = new RegExp(
  `^/(?:(?:(?:openai|api)/)?(?:v1/)+)?(${resources.join('|')})(?=/|$)`,
  // Routes match in any case, while decisions by path compare lower case.
  'i',
);
const usual = new RegExp(`^/v1/(?:${resources.join('|')})(?=[/?]|$)(?!.*//)`);

/**
 * Corrects the target of a request: a path of the API under a mistyped base URL (`//v1/…`, `/v1/v1/…`, `/openai/v1/…`,
 * `/api/v1/…`, without `/v1`) becomes the intended path. It only produces paths under `/v1/`, with their guards; other
 * targets stay as they are.
 */
export function gatewayPath(target: string): string {
  // A fast path for nearly every client.
  if (usual.test(target)) return target;
  if (!target.startsWith('/')) return target;
  const end = target.search(/[?#]|$/);
  const path = target.slice(0, end).replace(/\/{2,}/g, '/');
  const match = slipped.exec(path);
  if (match === null) return target;
  const [prefix, resource = ''] = match;
  return `/v1/${resource.toLowerCase()}${path.slice(prefix.length)}${target.slice(end)}`;
}
