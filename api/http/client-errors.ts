import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { ApiError, type ErrorCode } from '../../shared/errors.ts';
import { newJobId } from '../../shared/ids.ts';
import type { Logger } from '../../shared/runtime/log.ts';
import type { ApiMetrics } from '../../shared/runtime/metrics.ts';

/** Errors of Node's parser by code; all others are malformed requests. */
const refusals: Readonly<Record<string, readonly [ErrorCode, message: string]>> = {
  HPE_HEADER_OVERFLOW: ['headers_too_large', "The request's headers are too large: at most 16 KiB are accepted."],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: ['request_too_large', 'The extensions of a chunk of the request body are too large.'],
  ERR_HTTP_REQUEST_TIMEOUT: ['request_timeout', 'The request did not arrive in time.'],
};

/**
 * Responds to requests that the server refuses before the application sees them, as the application would: with an error in
 * the API's shape with a request id, a log line and a count. Then the connection closes.
 */
export function answerClientErrors(server: Server, { log, metrics }: { log: Logger; metrics: ApiMetrics }): void {
  server.on('clientError', (thrown: NodeJS.ErrnoException, stream) => {
    const socket = stream as Socket & { readonly _httpMessage?: ServerResponse | null };
    // A disconnected client reads nothing, and a started response must not contain another one.
    if (thrown.code === 'ECONNRESET' || !socket.writable || socket._httpMessage?.headersSent) {
      socket.destroy();
      return;
    }
    const [code, message] = refusals[thrown.code ?? ''] ?? [
      'invalid_request_error',
      'The request is not well-formed HTTP/1.1.',
    ];
    const error = new ApiError(code, message);
    const id = newJobId();
    socket.end(rawAnswer(error, id), () => socket.destroy());
    // A request whose body was truncated has its own log line.
    if (socket._httpMessage) return;
    metrics.requests.inc({ endpoint: 'other', status: String(error.status) });
    metrics.errors.inc({ endpoint: 'other', code });
    log.info({ job: id, status: error.status, endpoint: 'other', error: code, parser: thrown.code }, 'request');
  });
}

function rawAnswer(error: ApiError, id: string): string {
  const body = JSON.stringify(error.toWire());
  const lines = [
    `HTTP/1.1 ${error.status} ${STATUS_CODES[error.status]}`,
    'connection: close',
    'content-type: application/json; charset=utf-8',
    `content-length: ${Buffer.byteLength(body)}`,
    `x-request-id: req_${id}`,
  ];
  return `${lines.join('\r\n')}\r\n\r\n${body}`;
}

/** Passes requests with an unknown `Expect` to the application, which refuses them like others. */
export function routeExpectations(
  server: Server,
  handle: (request: IncomingMessage, response: ServerResponse) => unknown,
): void {
  server.on('checkExpectation', handle);
}
