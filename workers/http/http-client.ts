import { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { buildConnector, type Dispatcher, Pool } from 'undici';
import type { ConnectionError } from './connection-errors.ts';
import { Exchange, type HttpClientOptions, type HttpRequest } from './exchange.ts';
import type { ProxyConnector } from './proxy-connector.ts';

/**
 * How long a connection stays open unused. Vendors that announce their own time (`Keep-Alive: timeout=…`) are obeyed; uvicorn,
 * under many of the others, closes silently after 5 s, and a request that crosses the close is lost.
 */
const idleMs = 4_000;

/** A body that is sent as it is read, such as a form with files. */
export interface HttpUpload {
  /** Its Content-Type. */
  readonly type: string;
  readonly content: Readable;
  readonly bytes: number;
}

/** JSON as text, or a long one as bytes in parts. */
export type JsonBody = string | readonly Buffer[];

/** One POST request. */
export interface HttpPost extends HttpRequest {
  readonly body: JsonBody | HttpUpload;
}

/** The HTTP connection to one vendor. */
export interface HttpClient {
  /**
   * Posts once: no retry, no redirect.
   * @returns the buffered body, or null when it went to `onChunk`.
   * @throws ApiError for every status but 2xx, for a broken, silent or refused connection, and for an abort.
   */
  post(request: HttpPost): Promise<string | null>;
  /** Posts, as `post` does, and returns the buffered body in bytes, for answers that are passed on without being read. */
  postForBytes(request: Omit<HttpPost, 'onChunk'>): Promise<Buffer>;
  /** Gets, as `post` posts. */
  get(request: HttpRequest): Promise<string | null>;
  /** Puts, without a body, as `post` posts. */
  put(request: HttpRequest): Promise<string | null>;
  /** Deletes, as `post` posts. */
  delete(request: HttpRequest): Promise<string | null>;
  /** Closes the connections, including those in use. */
  close(): Promise<void>;
}

/**
 * Connects for a pool or an agent, and reports each socket before it is connected. Nothing may connect without it, as undici (7.30.2) errs
 * in how connections end. Listeners that run before its own keep it from that:
 *
 * It treats a reset of a connection that was not to be kept alive as the end of its body: a truncated answer would pass for a
 * complete one, and while the body is paused its parser fails an assertion that ends the process (`onHttpSocketError`).
 *
 * If a server closes its connection while the body is paused, of which all has come, that assertion fails, too, or the answer counts as
 * broken off (`onHttpSocketEnd`). So the body goes on first: nothing more of it comes.
 */
export function createConnector(
  options: buildConnector.BuildOptions = {},
  onSocket: (socket: Socket) => void = () => undefined,
): buildConnector.connector {
  const connect = buildConnector(options);
  return (target, callback) => {
    const socket: unknown = connect(target, (...result) => {
      result[1]?.prependListener('error', (error: ConnectionError) => {
        if (error.code === 'ECONNRESET') error.code = 'UND_ERR_SOCKET';
      });
      result[1]?.prependListener('end', resumeParser);
      callback(...result);
    });
    if (socket instanceof Socket) onSocket(socket);
  };
}

/** What is used of undici's parser of a connection. */
interface BodyParser {
  onBody: (bytes: Buffer) => number;
  resume(): void;
}

/** Has the parser of a connection that has ended go on, if it is paused: it has handed over all that came. */
function resumeParser(this: Socket): void {
  const name = Object.getOwnPropertySymbols(this).find(({ description }) => description === 'parser');
  const parser = name && (Reflect.get(this, name) as BodyParser | null);
  if (!parser) return;
  // It is called with no bytes then, and whoever has paused the body would pause it again.
  parser.onBody = () => 0;
  parser.resume();
}

/** Returns the headers of the span that a call belongs to. Undefined if nothing is traced, so that no call costs anything. */
let traceHeaders: (() => readonly string[] | undefined) | undefined;

/** Has every call send the trace headers that `read` returns. */
export function sendTraces(read: () => readonly string[] | undefined): void {
  traceHeaders = read;
}

/** Connects through a proxy. Undefined if there is none. */
let throughProxy: ProxyConnector | undefined;

/** Has each client that is created from now on connect through a proxy. */
export function connectThrough(connector: ProxyConnector): void {
  throughProxy = connector;
}

/** One keep-alive pool for one vendor. It grows as needed: the worker's concurrency bounds it. */
export function createHttpClient(options: HttpClientOptions): HttpClient {
  const base = new URL(options.baseUrl);
  const basePath = base.pathname.replace(/\/+$/, '');
  // Without a word any coding is fine: https://www.rfc-editor.org/rfc/rfc9110#name-accept-encoding
  const headers = Object.entries({ 'user-agent': 'sluice', 'accept-encoding': 'identity', ...options.headers }).flat();
  const jsonHeaders = ['content-type', 'application/json', ...headers];
  /** The exchange being dispatched: a connection opened meanwhile is its own. */
  let dispatched: { onConnecting(socket: Socket): void } | undefined;
  const onSocket = (socket: Socket): void => dispatched?.onConnecting(socket);
  const connect = throughProxy?.(base, createConnector(), onSocket) ?? createConnector({}, onSocket);
  const pool = new Pool(base.origin, { pipelining: 1, keepAliveTimeout: idleMs, connect });
  const send = <Answer>(
    method: Dispatcher.HttpMethod,
    request: HttpRequest,
    content: Pick<Dispatcher.DispatchOptions, 'headers' | 'body'>,
    readBody: (body: Buffer) => Answer,
  ): Promise<Answer | null> =>
    new Promise((resolve, reject) => {
      const exchange = new Exchange(options, request, readBody, resolve, reject);
      if (!exchange.start()) return;
      const { path, silenceMs } = request;
      dispatched = exchange;
      pool.dispatch(
        { path: basePath + path, method, ...content, headersTimeout: silenceMs, bodyTimeout: silenceMs },
        exchange,
      );
      dispatched = undefined;
    });
  const post = <Answer>({ body, ...request }: HttpPost, readBody: (body: Buffer) => Answer): Promise<Answer | null> => {
    if (typeof body === 'string') {
      return send('POST', request, { headers: withOwn(jsonHeaders, request), body }, readBody);
    }
    const upload = isUpload(body) ? body : asUpload(body);
    const content = { headers: withOwn(uploadHeaders(upload, headers), request), body: upload.content };
    return send('POST', request, content, readBody);
  };
  return {
    post: (request) => post(request, asText),
    postForBytes: async (request) => (await post(request, asBytes)) ?? Buffer.alloc(0),
    get: (request) => send('GET', request, { headers: withOwn(headers, request) }, asText),
    put: (request) => send('PUT', request, { headers: withOwn(headers, request) }, asText),
    delete: (request) => send('DELETE', request, { headers: withOwn(headers, request) }, asText),
    close: () => pool.destroy(),
  };
}

const asText = (body: Buffer): string => body.toString();
const asBytes = (body: Buffer): Buffer => body;

function withOwn(shared: string[], { headers }: HttpRequest): string[] {
  const trace = traceHeaders?.();
  if (trace !== undefined) return [...shared, ...trace, ...Object.entries(headers ?? {}).flat()];
  return headers === undefined ? shared : [...shared, ...Object.entries(headers).flat()];
}

function isUpload(body: readonly Buffer[] | HttpUpload): body is HttpUpload {
  return 'content' in body;
}

/** The parts are written one after the other: joined they would be copied. undici takes any iterable, its types do not. */
function asUpload(parts: readonly Buffer[]): HttpUpload {
  const bytes = parts.reduce((length, part) => length + part.length, 0);
  return { type: 'application/json', content: parts as unknown as Readable, bytes };
}

function uploadHeaders({ type, bytes }: HttpUpload, headers: string[]): string[] {
  return ['content-type', type, 'content-length', String(bytes), ...headers];
}
