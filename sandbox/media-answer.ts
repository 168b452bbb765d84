import { faultError } from './chat/stream-faults.ts';
import { Pace } from './chat/timed-answer.ts';
import type { Exchange } from './exchange.ts';
import type { SandboxModel } from './models.ts';
import { OpenCall } from './open-call.ts';
import type { CallOptions } from './request-fields.ts';
import type { FaultOptions } from './request-options.ts';
import { nextRequestId, sendError } from './response.ts';

/** A piece of a streamed answer; `after_tokens` and `tokens_per_second` count those with `counts`. */
export interface Part {
  data: string | Buffer;
  counts: boolean;
}

/** Applies a fault in the answer itself, and returns whether it is of this kind. */
export function meetsInAnswer({ call, fault }: Delivery, kind: 'no_done' | 'no_usage'): boolean {
  if (fault?.kind !== kind) return false;
  call.meetFault(kind, kind === 'no_done');
  return true;
}

/** How to deliver the answer to one request. */
export interface Delivery {
  call: OpenCall;
  pace: Pace;
  fault: FaultOptions | undefined;
}

/** An SSE event without a name. */
export function eventText(data: object): string {
  return `data: ${JSON.stringify(data)}\n\n`;
}

/** Opens the call (from here on it is in the journal), waits, applies faults that prevent an answer, else lets `give` write the answer. */
export function answerMedia(
  { response, state }: Exchange,
  request: CallOptions & { model: SandboxModel; stream: boolean },
  give: (delivery: Delivery) => Promise<void>,
): void {
  const { options, testId, model, stream } = request;
  const fault = state.faults.due(options.fault);
  const pace = new Pace(options.firstTokenMilliseconds, options.tokensPerSecond);
  const call = new OpenCall(response, state.journal, { testId, model: model.id, stream });
  deliver({ call, pace, fault }, stream, give);
}

/** Same as `answerMedia`, for a call that is already open. */
export function deliver(delivery: Delivery, stream: boolean, give: (delivery: Delivery) => Promise<void>): void {
  const { call, pace, fault } = delivery;
  const run = async (): Promise<void> => {
    await call.pause(pace.firstTokenMilliseconds);
    if (call.closed) return;
    if (fault !== undefined && (await failBeforeHeaders(call, stream, fault))) return;
    await give(delivery);
  };
  run().catch((error) => {
    console.error(error);
    call.response.destroy();
  });
}

async function failBeforeHeaders(call: OpenCall, stream: boolean, fault: FaultOptions): Promise<boolean> {
  const isError = fault.kind === 'error' || fault.kind === 'rate_limit';
  const midAnswer = fault.afterTokens !== undefined && (stream || !isError);
  if (midAnswer || !(isError || fault.kind === 'silence' || fault.kind === 'reset')) return false;
  call.meetFault(fault.kind, fault.kind !== 'silence');
  if (isError) sendError(call.response, faultError(fault));
  else if (fault.kind === 'silence') await call.silence();
  else await call.reset();
  return true;
}

/** Writes a streamed answer part by part, each when it is due; no more is generated than the client reads. */
export async function sendParts(
  { call, pace, fault }: Delivery,
  contentType: string,
  parts: AsyncIterable<Part>,
): Promise<void> {
  const { response } = call;
  response.writeHead(200, {
    'Content-Type': contentType,
    'Cache-Control': 'no-cache',
    'x-request-id': nextRequestId(),
  });
  let written = 0;
  let met = false;
  for await (const part of parts) {
    if (part.counts) await call.pause(pace.untilToken(written));
    if (call.closed) return;
    if (fault !== undefined && !met && written >= (fault.afterTokens ?? 0)) {
      met = true;
      if (await failBetweenParts(call, contentType, fault)) return;
    }
    if (part.counts) written += 1;
    call.entry.tokens = written;
    if (fault?.kind === 'slow_bytes') await call.writeInPieces(Buffer.from(part.data as string));
    else await call.write(part.data);
  }
  response.end();
}

/** Applies the fault instead of the next part; false: the answer continues. */
async function failBetweenParts(call: OpenCall, contentType: string, fault: FaultOptions): Promise<boolean> {
  const isEvents = contentType.startsWith('text/event-stream');
  const goesOn = fault.kind === 'slow_bytes' || fault.kind === 'malformed';
  call.meetFault(fault.kind, !goesOn && fault.kind !== 'silence');
  call.response.flushHeaders();
  switch (fault.kind) {
    case 'slow_bytes':
      return false;
    case 'malformed':
      await call.write('data: {"type":"broken","del\n\n');
      return false;
    case 'silence':
      await call.silence();
      return true;
    case 'reset':
      await call.reset();
      return true;
    case 'eof':
      // Raw audio that ended cleanly would look complete.
      if (isEvents) call.response.end();
      else await call.disconnect();
      return true;
    default:
      call.response.end(`data: ${faultError(fault).toBody()}\n\n`);
      return true;
  }
}

/**
 * Writes an answer as a whole when the last of its tokens is due; a fault in the middle leaves half its bytes.
 * @param tokens number of tokens (or images) in it.
 */
export async function sendWhole(
  { call, pace, fault }: Delivery,
  contentType: string,
  body: string | Buffer,
  tokens: number,
): Promise<void> {
  const written = Math.min(tokens, fault?.afterTokens ?? tokens);
  await call.pause(pace.untilToken(Math.max(0, written - 1)));
  if (call.closed) return;
  call.entry.tokens = written;
  const bytes = typeof body === 'string' ? Buffer.from(body) : body;
  const half = bytes.subarray(0, Math.floor(bytes.length / 2));
  const isCutShort = fault?.kind === 'malformed';
  call.response.writeHead(200, {
    'Content-Type': contentType,
    'Content-Length': isCutShort ? half.length : bytes.length,
    'x-request-id': nextRequestId(),
  });
  if (fault === undefined || fault.kind === 'no_usage') {
    call.response.end(bytes);
    return;
  }
  call.meetFault(fault.kind, fault.kind !== 'silence' && fault.kind !== 'slow_bytes');
  if (fault.kind === 'slow_bytes') {
    await call.writeInPieces(bytes);
    call.response.end();
    return;
  }
  if (isCutShort) {
    call.response.end(half);
    return;
  }
  await call.write(half);
  if (fault.kind === 'silence') await call.silence();
  else if (fault.kind === 'reset') await call.reset();
  else await call.disconnect();
}
