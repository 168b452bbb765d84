import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type {
  AnswerBody,
  CallFiles,
  FrameSink,
  JobAnswer,
  VendorAnswer,
  VendorCall,
  VendorFrame,
} from '../../../workers/vendors/vendor.ts';
import { longKeepAliveMs } from '../../support/long-keep-alive.ts';
import { liftUploads } from './lift-uploads.ts';

export interface ReceivedRequest {
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
  /** The body where it is no text. */
  readonly bytes: Buffer;
}

/** Answers one request. */
export type Answer = (response: ServerResponse, request: ReceivedRequest) => void;

/** A vendor's HTTP server whose next answers a test writes itself. */
export interface FixtureVendor {
  readonly baseUrl: string;
  readonly requests: ReceivedRequest[];
  /** Connections it has accepted so far. */
  connections(): number;
  /** From now on requests are answered by this. */
  answer(answer: Answer): void;
  /** Resets every open connection. */
  reset(): void;
  close(): Promise<void>;
}

export async function startFixtureVendor(): Promise<FixtureVendor> {
  let current: Answer = (response) => response.writeHead(500).end();
  let connections = 0;
  const sockets = new Set<Socket>();
  const requests: ReceivedRequest[] = [];
  const server = createServer({ keepAliveTimeout: longKeepAliveMs }, async (message, response) => {
    const parts: Buffer[] = [];
    for await (const part of message) parts.push(part);
    const { method, url, headers } = message;
    const bytes = Buffer.concat(parts);
    const received = { method, url, headers, body: bytes.toString(), bytes };
    requests.push(received);
    current(response, received);
  });
  server.on('connection', (socket) => {
    connections += 1;
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    requests,
    connections: () => connections,
    answer: (answer) => {
      current = answer;
    },
    reset: () => {
      for (const socket of sockets) socket.resetAndDestroy();
    },
    close: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

/** Answers a stream, each part as an HTTP chunk of its own, so that the client sees these very cuts. */
export function sendStream(response: ServerResponse, parts: readonly (string | Uint8Array)[]): void {
  beginStream(response);
  for (const part of parts) if (part.length > 0) response.write(part);
  response.end();
}

export function beginStream(response: ServerResponse, headers: Record<string, string> = {}): void {
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', ...headers });
  response.flushHeaders();
}

export function sendJson(
  response: ServerResponse,
  status: number,
  body: string,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body);
}

/** Bytes cut at the given places. */
export function cut(bytes: Buffer, places: readonly number[]): Buffer[] {
  const sorted = [...new Set(places.map((place) => place % (bytes.length + 1)))].sort((a, b) => a - b);
  return [...sorted, bytes.length].map((end, index) => bytes.subarray(sorted[index - 1] ?? 0, end));
}

/** A sink that takes everything, and keeps it. */
export function collect(): FrameSink & { readonly frames: VendorFrame[]; data(): unknown[] } {
  const frames: VendorFrame[] = [];
  return {
    frames,
    data: () => frames.map((frame) => JSON.parse(frame.text)),
    write: (frame) => {
      frames.push(frame);
      return true;
    },
    drained: () => Promise.resolve(),
  };
}

/** For calls without files. */
const noFiles: CallFiles = {
  open: () => Promise.reject(new Error('no such file')),
  save: () => Promise.reject(new Error('nothing is to be stored')),
};

/** An answer's body as text. */
export function bodyText(body: AnswerBody): string {
  return typeof body === 'string' ? body : Buffer.concat(body).toString();
}

/** An answer with its body as text. */
export function inText(answer: JobAnswer): VendorAnswer {
  return { ...answer, body: bodyText(answer.body) };
}

/** A call. Uploads may be written into its request, see `liftUploads`. */
export function callOf(call: Partial<VendorCall> = {}): VendorCall {
  const { request: given = '{"messages":[{"role":"user","content":"Hello!"}]}' } = call;
  const hasWritten = call.uploads === undefined && given.includes('"file":"');
  const { request, uploads } = hasWritten ? liftUploads(given) : { request: given, uploads: [] };
  return {
    model: 'gpt-4o-mini',
    stream: true,
    uploads,
    signal: new AbortController().signal,
    silenceMs: 20_000,
    files: noFiles,
    ...call,
    request,
  };
}
