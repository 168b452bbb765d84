import type { OpenCall } from '../open-call.ts';
import type { FaultOptions } from '../request-options.ts';
import { nextRequestId, sendJson } from '../response.ts';
import type { StreamStep } from './stream-faults.ts';

/** Due events are joined up to this many characters: one write for many tokens if no pace was requested. */
const WRITE_CHARACTERS = 65_536;

/** When each token of an answer is due. */
export class Pace {
  readonly firstTokenMilliseconds: number;
  readonly #millisecondsPerToken: number;
  readonly #start = performance.now();

  constructor(firstTokenMilliseconds: number, tokensPerSecond: number | undefined) {
    this.firstTokenMilliseconds = firstTokenMilliseconds;
    this.#millisecondsPerToken = tokensPerSecond === undefined ? 0 : 1000 / tokensPerSecond;
  }

  get takesTime(): boolean {
    return this.firstTokenMilliseconds > 0 || this.#millisecondsPerToken > 0;
  }

  /** Milliseconds until this token (from 0) is due; computed from the start, so that delays do not add up. */
  untilToken(index: number): number {
    if (this.#millisecondsPerToken === 0) return 0;
    const due = this.#start + this.firstTokenMilliseconds + index * this.#millisecondsPerToken;
    return due - performance.now();
  }
}

/**
 * Writes the answer as SSE, each token when it is due.
 * @param steps the events, with the fault inserted.
 */
export async function streamAnswer(
  call: OpenCall,
  steps: Iterable<StreamStep>,
  pace: Pace,
  fault: FaultOptions | undefined,
): Promise<void> {
  const { response } = call;
  const slow = fault?.kind === 'slow_bytes';
  let batch = '';
  let tokens = 0;
  const writeBatch = async () => {
    const text = batch;
    batch = '';
    call.entry.tokens = tokens;
    // JSON contains no raw line break: these are the ends of the events' lines.
    if (slow) await call.writeInPieces(Buffer.from(text.replaceAll('\n', '\r\n')));
    else await call.write(text);
  };
  response.writeHead(200, [
    ...['Content-Type', 'text/event-stream; charset=utf-8', 'Cache-Control', 'no-cache'],
    ...['x-request-id', nextRequestId()],
  ]);
  for (const step of steps) {
    if (typeof step === 'string') {
      if (batch === '') response.flushHeaders();
      else await writeBatch();
      return step === 'silence' ? call.silence() : call.reset();
    }
    const wait = step.isToken ? pace.untilToken(tokens) : 0;
    if (wait > 0) {
      if (batch !== '') await writeBatch();
      await call.pause(wait);
    }
    if (call.closed) return;
    if (step.isToken) tokens += 1;
    batch += step.text;
    if (batch.length >= WRITE_CHARACTERS) await writeBatch();
  }
  if (slow) await writeBatch();
  call.entry.tokens = tokens;
  response.end(batch);
}

/** Writes the answer as one body when its last token is due; a fault in the middle leaves half a body. */
export async function holdAnswer(
  call: OpenCall,
  body: string,
  tokens: number,
  pace: Pace,
  fault: FaultOptions | undefined,
): Promise<void> {
  const { response } = call;
  const written = Math.min(tokens, fault?.afterTokens ?? tokens);
  await call.pause(pace.untilToken(Math.max(0, written - 1)));
  if (call.closed) return;
  call.entry.tokens = written;
  const half = body.slice(0, Math.floor(body.length / 2));
  switch (fault?.kind) {
    case 'malformed':
      call.meetFault(fault.kind, true);
      return sendJson(response, 200, half);
    case 'silence':
    case 'reset':
    case 'eof':
      call.meetFault(fault.kind, fault.kind !== 'silence');
      response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) });
      await call.write(half);
      if (fault.kind === 'silence') return call.silence();
      return fault.kind === 'reset' ? call.reset() : call.disconnect();
    case 'slow_bytes':
      call.meetFault(fault.kind, false);
      response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) });
      await call.writeInPieces(Buffer.from(body));
      response.end();
      return;
    default:
      if (fault?.kind === 'large_event' || fault?.kind === 'failed_event' || fault?.kind === 'no_usage') {
        call.meetFault(fault.kind, fault.kind === 'failed_event');
      }
      return sendJson(response, 200, body);
  }
}
