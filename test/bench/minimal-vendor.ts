/**
 * A stand-in vendor that costs as little as it can, in its own process, so that what is measured is the gateway.
 *
 * `POST /v1/embeddings` and `/v1/images/generations` answer fixed bytes. `POST /v1/chat/completions` answers a fixed OpenAI-shaped completion, or streams. How it streams is told by the
 * request's `user` field, which every gateway passes on: `bench:fast:50` (50 tokens at once), `bench:paced:500` (500
 * tokens, 50 a second), `bench:slow:60` (60 tokens, one every 10 s). A fast stream has one HTTP chunk per event and so many
 * of them per write as the first argument says. Reports `{ port }` to its parent once it listens.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { benchEmbeddings, benchImages, benchText, benchToken } from './bench-requests.ts';

const model = 'gpt-4o-mini-2024-07-18';
const id = 'chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT';
const eventsPerWrite = Number(process.argv[2] ?? 10);
const pacedInterval = 20;
const slowInterval = 10_000;
const maximumUnsentBytes = 1 << 20;

const usage = { prompt_tokens: 19, completion_tokens: 50, total_tokens: 69 };
const completion = Buffer.from(
  JSON.stringify({
    id,
    object: 'chat.completion',
    created: 1741569952,
    model,
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: benchText(50), refusal: null, annotations: [] },
        logprobs: null,
        finish_reason: 'stop',
      },
    ],
    usage,
    service_tier: 'default',
    system_fingerprint: 'fp_0aa8d3e20b',
  }),
);
/** What never changes, by path. */
const fixedAnswers: Readonly<Record<string, Buffer>> = {
  '/v1/embeddings': Buffer.from(JSON.stringify(benchEmbeddings())),
  '/v1/images/generations': Buffer.from(JSON.stringify(benchImages())),
};
const streamHeaders = { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' };

function chunkEvent(choices: unknown[], usage?: unknown): string {
  const chunk = {
    id,
    object: 'chat.completion.chunk',
    created: 1741569952,
    model,
    system_fingerprint: 'fp_0aa8d3e20b',
  };
  return `data: ${JSON.stringify({ ...chunk, choices, ...(usage ? { usage } : {}) })}\n\n`;
}

function deltaEvent(delta: unknown, finishReason: string | null = null): string {
  return chunkEvent([{ index: 0, delta, logprobs: null, finish_reason: finishReason }]);
}

const roleEvent = deltaEvent({ role: 'assistant', content: '', refusal: null });
const finishEvent = deltaEvent({}, 'stop');
const usageEvent = chunkEvent([], usage);
const doneEvent = 'data: [DONE]\n\n';
const tokenEvents: Buffer[] = [];

function tokenEvent(index: number): Buffer {
  let event = tokenEvents[index];
  if (!event) {
    event = Buffer.from(deltaEvent({ content: benchToken(index) }));
    tokenEvents[index] = event;
  }
  return event;
}

function lastEvents(includeUsage: boolean): string[] {
  return includeUsage ? [finishEvent, usageEvent, doneEvent] : [finishEvent, doneEvent];
}

/** The writes of a whole fast stream, made once for each length. */
const fastWrites = new Map<string, Buffer[]>();

/** Events as HTTP chunks, one each. */
function httpChunks(events: string[]): Buffer {
  return Buffer.from(events.map((event) => `${Buffer.byteLength(event).toString(16)}\r\n${event}\r\n`).join(''));
}

function writesOfFastStream(tokens: number, includeUsage: boolean): Buffer[] {
  const key = `${tokens}${includeUsage}`;
  let writes = fastWrites.get(key);
  if (!writes) {
    const events = [roleEvent, ...Array.from({ length: tokens }, (_, index) => tokenEvent(index).toString())];
    events.push(...lastEvents(includeUsage));
    writes = [];
    for (let from = 0; from < events.length; from += eventsPerWrite) {
      writes.push(httpChunks(events.slice(from, from + eventsPerWrite)));
    }
    fastWrites.set(key, writes);
  }
  return writes;
}

/** The chunks are framed beforehand and go past `response.write`, which would cost more than all the rest. */
function streamFast(response: ServerResponse, tokens: number, includeUsage: boolean): void {
  const writes = writesOfFastStream(tokens, includeUsage);
  let next = 0;
  response.flushHeaders();
  const writeNext = () => {
    if (response.destroyed) return;
    if (next === writes.length) {
      response.end();
      return;
    }
    response.socket?.write(writes[next++] ?? '');
    setImmediate(writeNext);
  };
  writeNext();
}

/** Streams that share one clock: each belongs to one millisecond of the interval, so that their tokens are spread over it. */
class PacedStreams {
  private readonly phases: Set<() => void>[] = Array.from({ length: pacedInterval }, () => new Set());
  private nextPhase = 0;
  private tick = 0;
  private startedAt = 0;
  private timer: NodeJS.Timeout | undefined;

  add(writeToken: () => void): () => void {
    const phase = this.phases[this.nextPhase++ % pacedInterval] ?? new Set();
    phase.add(writeToken);
    if (!this.timer) {
      this.startedAt = performance.now() - this.tick;
      this.timer = setInterval(() => this.advance(), 1);
    }
    return () => {
      phase.delete(writeToken);
      if (this.phases.every((each) => each.size === 0)) {
        clearInterval(this.timer);
        this.timer = undefined;
      }
    };
  }

  /** A late timer makes up for the milliseconds that it missed, so that the rate holds. */
  private advance(): void {
    const now = performance.now() - this.startedAt;
    while (this.tick < now) {
      for (const writeToken of this.phases[this.tick++ % pacedInterval] ?? []) writeToken();
    }
  }
}

const pacedStreams = new PacedStreams();

function streamByClock(response: ServerResponse, tokens: number, includeUsage: boolean, slow: boolean): void {
  let next = 0;
  let leave = () => {};
  response.on('close', () => leave());
  response.write(roleEvent);
  const writeToken = () => {
    if (next === tokens) {
      leave();
      response.end(lastEvents(includeUsage).join(''));
    } else if (response.writableLength > maximumUnsentBytes) {
      response.destroy();
    } else {
      response.write(tokenEvent(next++));
    }
  };
  if (slow) {
    const timer = setInterval(writeToken, slowInterval);
    leave = () => clearInterval(timer);
    writeToken();
  } else {
    leave = pacedStreams.add(writeToken);
  }
}

/** A body from this length on is searched, not parsed: bytes. */
const longBody = 65_536;
/** Where `user` stands in it: within so many bytes of its end. */
const endOfLongBody = 1_000;

interface ChatRequest {
  stream?: boolean;
  stream_options?: { include_usage?: boolean };
  user?: string;
}

function answerFixed(bytes: Buffer, response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': bytes.length });
  response.end(bytes);
}

/** A long prompt is not parsed: what the vendor spends is taken from the gateways' two cores. */
function readChatRequest(body: Buffer): ChatRequest {
  if (body.length < longBody) return JSON.parse(body.toString());
  const isStream = body.includes('"stream":true');
  const user = /"user": ?"([^"]*)"/.exec(body.toString('latin1', body.length - endOfLongBody))?.[1];
  const includeUsage = body.includes('"include_usage":true');
  return { stream: isStream, ...(user && { user }), stream_options: { include_usage: includeUsage } };
}

function answerChat(body: Buffer, response: ServerResponse): void {
  const request = readChatRequest(body);
  if (!request.stream) {
    answerFixed(completion, response);
    return;
  }
  const [, mode = 'fast', count = '50'] = (request.user ?? '').split(':');
  const tokens = Number(count);
  const includeUsage = request.stream_options?.include_usage === true;
  response.writeHead(200, streamHeaders);
  if (mode === 'fast') streamFast(response, tokens, includeUsage);
  else streamByClock(response, tokens, includeUsage, mode === 'slow');
}

const server = createServer((request: IncomingMessage, response: ServerResponse) => {
  const parts: Buffer[] = [];
  request.on('data', (part: Buffer) => parts.push(part));
  request.on('end', () => {
    const fixed = fixedAnswers[request.url ?? ''];
    if (request.method !== 'POST') response.writeHead(404).end();
    else if (request.url === '/v1/chat/completions') answerChat(Buffer.concat(parts), response);
    else if (fixed !== undefined) answerFixed(fixed, response);
    else response.writeHead(404).end();
  });
});
server.keepAliveTimeout = 300_000;
server.requestTimeout = 0;
server.listen({ port: 0, host: '127.0.0.1', backlog: 4096 }, () => {
  process.send?.({ port: (server.address() as AddressInfo).port });
});
process.on('disconnect', () => process.exit(0));
process.on('SIGTERM', () => process.exit(0));
