import type { TraceContext } from './trace-context.ts';

/** Attributes of a span. Never keys, prompts or answers. */
export type SpanAttributes = Readonly<Record<string, string | number | boolean | undefined>>;

/** What a span begins with. */
export interface SpanStart {
  readonly name: string;
  readonly kind: 'server' | 'client' | 'consumer';
  /** The span that it is part of; left out: it begins a trace. */
  readonly parent?: TraceContext | undefined;
  /** In ms since 1970; left out: now. */
  readonly startedAt?: number;
  readonly attributes?: SpanAttributes;
}

/** How a span ends. */
export interface SpanEnd {
  readonly name?: string;
  readonly attributes?: SpanAttributes;
  /** Code of the error that it ended with. */
  readonly error?: string | undefined;
  /** In ms since 1970; left out: now. */
  readonly endedAt?: number;
}

/** A span under way. */
export interface OpenSpan {
  /** For the spans within it. */
  readonly context: TraceContext;
  /** Notes a moment. @param at in ms since 1970 */
  mark(name: string, at: number): void;
  end(end?: SpanEnd): void;
}

/** Records the spans of a process. */
export interface Tracer {
  /** Whether a new request is traced. @param caller its own context, if it sent one */
  isSampled(caller: TraceContext | undefined): boolean;
  start(start: SpanStart): OpenSpan;
  /** Sends what is left, for a bounded time. */
  close(): Promise<void>;
}
