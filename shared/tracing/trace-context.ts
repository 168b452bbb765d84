import { AsyncLocalStorage } from 'node:async_hooks';
import type { IncomingHttpHeaders } from 'node:http';

/** Where a span is in a trace, as it travels: https://www.w3.org/TR/trace-context/ */
export interface TraceContext {
  /** The header `traceparent`. */
  readonly parent: string;
  /** The header `tracestate`, which is passed on unread. */
  readonly state?: string;
}

const traceparent = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;
/** What the specification asks to pass on; longer ones are left out. */
const maxState = 512;

/** Reads a caller's trace context. Undefined if there is none, or none that is well-formed. */
export function readTraceContext(headers: IncomingHttpHeaders): TraceContext | undefined {
  const { traceparent: parent, tracestate: state } = headers;
  if (typeof parent !== 'string' || !traceparent.test(parent)) return undefined;
  const isUsable = typeof state === 'string' && state.length <= maxState && /^[\x20-\x7e]+$/.test(state);
  return isUsable ? { parent, state } : { parent };
}

/** The id of a trace, as logs and exemplars name it. */
export function traceIdOf({ parent }: TraceContext): string {
  return parent.slice(3, 35);
}

/** Created with the first trace: without one, no asynchronous step carries anything. */
let storage: AsyncLocalStorage<TraceContext> | undefined;

/** Runs work whose calls of vendors belong to this span. */
export function inTrace<Result>(context: TraceContext, work: () => Result): Result {
  storage ??= new AsyncLocalStorage();
  return storage.run(context, work);
}

/** The headers of the current span; undefined outside of a trace. */
export function traceHeaders(): readonly string[] | undefined {
  const context = storage?.getStore();
  if (context === undefined) return undefined;
  const { parent, state } = context;
  return state === undefined ? ['traceparent', parent] : ['traceparent', parent, 'tracestate', state];
}
