import type { ServerResponse } from 'node:http';
import type { WireError } from './wire-error.ts';

let requests = 0;
const started = Date.now().toString(36);

/** An id unique within this process; unique enough across restarts to read two logs side by side. */
export function nextRequestId(): string {
  requests += 1;
  return `${started}${requests.toString(36).padStart(6, '0')}`;
}

/** Sends a whole JSON response in one write. */
export function sendJson(response: ServerResponse, status: number, body: string, requestId = nextRequestId()): void {
  response.writeHead(status, [
    'Content-Type',
    'application/json',
    'Content-Length',
    String(Buffer.byteLength(body)),
    'x-request-id',
    requestId,
  ]);
  response.end(body);
}

/** Sends an error in OpenAI's format, with the error's own headers. */
export function sendError(response: ServerResponse, error: WireError): void {
  for (const [name, value] of Object.entries(error.headers)) response.setHeader(name, value);
  const body = error.toBody();
  response.writeHead(error.status, {
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(body),
    'x-request-id': nextRequestId(),
  });
  response.end(body);
}
