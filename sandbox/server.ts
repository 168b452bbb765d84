import { isUtf8 } from 'node:buffer';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createSpeech } from './audio/speech.ts';
import { transcribe, translate } from './audio/transcriptions.ts';
import { chatCompletions } from './chat/chat-completions.ts';
import { createCompletion } from './completions/completions.ts';
import { createEmbeddings } from './embeddings/embeddings.ts';
import type { Exchange, SandboxState } from './exchange.ts';
import { isForm } from './form.ts';
import { ImageStore } from './images/image-store.ts';
import { editImages, editImagesOfForm, generateImages, varyImage } from './images/images.ts';
import { sendStoredImage } from './images/send-stored-image.ts';
import { Journal } from './journal.ts';
import { listModels, retrieveModel } from './models.ts';
import { PromptCache } from './prompt-cache.ts';
import { FaultCounter } from './request-options.ts';
import { sendError } from './response.ts';
import { createResponse } from './responses/create-response.ts';
import { VideoStore } from './videos/video-store.ts';
import {
  createVideo,
  createVideoOfForm,
  deleteVideo,
  listVideos,
  remixVideo,
  retrieveVideo,
  sendVideoContent,
} from './videos/videos.ts';
import { WireError } from './wire-error.ts';

type Handler = (exchange: Exchange) => void;

/** Every route, without the optional `/v1`; a path that ends in `/` is followed by an id, or has `{id}` in its middle. */
const routes: Readonly<Record<string, Readonly<Record<string, Handler>>>> = {
  '/models': { GET: ({ response }) => listModels(response) },
  '/models/': { GET: ({ response, id }) => retrieveModel(response, id) },
  '/chat/completions': { POST: chatCompletions },
  '/completions': { POST: createCompletion },
  '/responses': { POST: createResponse },
  '/embeddings': { POST: createEmbeddings },
  '/images/generations': { POST: generateImages },
  '/images/edits': { POST: editImages },
  '/images/variations': { POST: refuseJson },
  '/generated-images/': { GET: sendStoredImage },
  '/audio/speech': { POST: createSpeech },
  '/audio/transcriptions': { POST: refuseJson },
  '/audio/translations': { POST: refuseJson },
  '/videos': { GET: listVideos, POST: createVideo },
  '/videos/': { GET: retrieveVideo, DELETE: deleteVideo },
  '/videos/{id}/content': { GET: sendVideoContent },
  '/videos/{id}/remix': { POST: remixVideo },
  '/__journal': { GET: sendJournal },
  '/__open': { GET: sendOpenCount },
};

/** The routes that read a `multipart/form-data` body while it arrives: its files are too large for memory. */
const formRoutes: Readonly<Record<string, (exchange: Exchange) => Promise<void>>> = {
  '/images/edits': editImagesOfForm,
  '/images/variations': varyImage,
  '/audio/transcriptions': transcribe,
  '/audio/translations': translate,
  '/videos': createVideoOfForm,
};

const MAXIMUM_BODY_BYTES = 64 * 1024 * 1024;
const CLOSE_AFTER_MILLISECONDS = 1000;
const LINGER_MILLISECONDS = 5000;

/** A running sandbox. */
export interface RunningSandbox {
  port: number;
  /** Without a trailing slash and without `/v1`. */
  url: string;
  /** Stops listening; calls still open after a second are disconnected. */
  close(): Promise<void>;
}

/**
 * Starts the sandbox vendor.
 * @param options `port` 0 (the default) picks a free one; `journal` keeps the entries of `GET /__journal`.
 */
export function startSandbox(
  options: { port?: number; host?: string; journal?: boolean } = {},
): Promise<RunningSandbox> {
  const host = options.host ?? '127.0.0.1';
  const state: SandboxState = {
    journal: new Journal(options.journal ?? false),
    faults: new FaultCounter(),
    promptCache: new PromptCache(),
    images: new ImageStore(),
    videos: new VideoStore(),
  };
  // Clients keep connections open for long: closing one here while a request is on its way would look like a vendor's fault.
  const server = createServer({ keepAliveTimeout: 120_000, requestTimeout: 0 }, (request, response) =>
    receive(request, response, state),
  );
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port ?? 0, host, () => {
      server.off('error', reject);
      const { port } = server.address() as AddressInfo;
      const url = `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
      resolve({ port, url, close: () => closeServer(server, state) });
    });
  });
}

async function closeServer(server: Server, { videos }: SandboxState): Promise<void> {
  await new Promise<void>((resolve) => {
    const timer = setTimeout(() => server.closeAllConnections(), CLOSE_AFTER_MILLISECONDS);
    server.close(() => {
      clearTimeout(timer);
      resolve();
    });
  });
  await videos.renderer.close();
}

function receive(request: IncomingMessage, response: ServerResponse, state: SandboxState): void {
  const readForm = request.method === 'POST' && isForm(request) ? formRoutes[routeOf(request.url ?? '/')] : undefined;
  if (readForm === undefined) {
    receiveWhole(request, response, state);
    return;
  }
  readForm({ request, response, body: '', id: '', query: noQuery, state }).catch((error) => {
    // The client has disconnected, perhaps in the middle of its form.
    if (response.destroyed) return;
    if (!request.complete) lingerForRest(request);
    sendError(response, asWireError(error));
  });
}

function receiveWhole(request: IncomingMessage, response: ServerResponse, state: SandboxState): void {
  const chunks: Buffer[] = [];
  let length = 0;
  const collect = (chunk: Buffer) => {
    chunks.push(chunk);
    length += chunk.length;
    if (length > MAXIMUM_BODY_BYTES) refuse();
  };
  const finish = () => {
    answer(request, response, state, chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks));
  };
  const refuse = () => {
    request.off('data', collect).off('end', finish);
    refuseLargeBody(request, response);
  };
  request.on('data', collect).on('end', finish);
  if (Number(request.headers['content-length']) > MAXIMUM_BODY_BYTES) refuse();
}

function refuseLargeBody(request: IncomingMessage, response: ServerResponse): void {
  lingerForRest(request);
  sendError(response, new WireError(413, 'The request is larger than 64 MiB.', { code: 'request_too_large' }));
}

/**
 * Reads and discards the rest of the body, for a while: a client disconnected while sending would never see the response. For
 * the same reason the connection is not closed after the response.
 */
function lingerForRest(request: IncomingMessage): void {
  const linger = setTimeout(() => request.destroy(), LINGER_MILLISECONDS);
  request.once('close', () => clearTimeout(linger)).resume();
}

function refuseJson({ request }: Exchange): void {
  const sent = (request.headers['content-type'] ?? 'none').slice(0, 200);
  throw new WireError(400, `Invalid Content-Type header (${sent}), expected multipart/form-data.`);
}

function answer(request: IncomingMessage, response: ServerResponse, state: SandboxState, body: Buffer): void {
  try {
    const { methods, id, query } = findRoute(request.url ?? '/');
    const handler = methods[request.method ?? ''];
    if (handler === undefined) {
      const headers = { Allow: Object.keys(methods).join(', ') };
      throw new WireError(405, `Not allowed: ${request.method}. Use ${headers.Allow}.`, { headers });
    }
    if (!isUtf8(body)) throw new WireError(400, 'The body of the request is not valid UTF-8.');
    handler({ request, response, body: body.toString(), id, query, state });
  } catch (error) {
    sendError(response, asWireError(error));
  }
}

function asWireError(error: unknown): WireError {
  if (error instanceof WireError) return error;
  if (error instanceof RangeError) return new WireError(400, 'The request is nested too deeply.');
  console.error(error);
  return new WireError(500, 'The sandbox failed to answer this request.');
}

const noQuery = new URLSearchParams();

function routeOf(url: string): string {
  const path = url.split('?', 1)[0] as string;
  return path.startsWith('/v1/') ? path.slice(3) : path;
}

function findRoute(url: string) {
  const mark = url.indexOf('?');
  const query = mark < 0 ? noQuery : new URLSearchParams(url.slice(mark));
  const route = routeOf(url);
  if (Object.hasOwn(routes, route) && !route.endsWith('/')) {
    return { methods: routes[route] as Record<string, Handler>, id: '', query };
  }
  const [, collection, member, rest] = /^(\/[^/]+\/)([^/]+)(\/[^/]+)$/.exec(route) ?? [];
  const inside = `${collection}{id}${rest}`;
  if (member !== undefined && Object.hasOwn(routes, inside)) {
    return { methods: routes[inside] as Record<string, Handler>, id: decodeId(member), query };
  }
  const [, parent, id] = /^(\/[^/]+\/)(.+)$/.exec(route) ?? [];
  if (parent !== undefined && id !== undefined && Object.hasOwn(routes, parent)) {
    return { methods: routes[parent] as Record<string, Handler>, id: decodeId(id), query };
  }
  throw new WireError(404, `Unknown request URL: ${url.split('?', 1)[0]?.slice(0, 200)}.`, { code: 'unknown_url' });
}

function decodeId(id: string): string {
  try {
    return decodeURIComponent(id);
  } catch {
    return id;
  }
}

function sendJournal({ response, query, state }: Exchange): void {
  response.writeHead(200, { 'Content-Type': 'application/jsonl' });
  response.end(state.journal.toLines(query.get('test_id')));
}

function sendOpenCount({ response, query, state }: Exchange): void {
  response.writeHead(200, { 'Content-Type': 'application/json' });
  response.end(JSON.stringify({ open: state.journal.countOpen(query.get('test_id')) }));
}
