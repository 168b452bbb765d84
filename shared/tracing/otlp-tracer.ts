import {
  DiagLogLevel,
  diag,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  trace,
} from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { AlwaysOnSampler, BasicTracerProvider, BatchSpanProcessor } from '@opentelemetry/sdk-trace-base';
import type { TracingSettings } from '../config/tracing-settings.ts';
import type { Logger } from '../runtime/log.ts';
import { version } from '../runtime/version.ts';
import { withTimeout } from '../runtime/with-timeout.ts';
import type { TraceContext } from './trace-context.ts';
import type { OpenSpan, SpanAttributes, SpanEnd, SpanStart, Tracer } from './tracer.ts';

/** How long the last spans may take to be sent when the process closes. */
const closeMs = 2000;
/** Minimum interval of warnings that spans cannot be sent. */
const warnMs = 60_000;

const kinds = { server: SpanKind.SERVER, client: SpanKind.CLIENT, consumer: SpanKind.CONSUMER };

/**
 * Sends spans to a collector by OTLP over HTTP. Spans wait in a bounded queue (2,048), which drops what a slow or missing collector
 * does not take: tracing never holds up a request.
 */
export class OtlpTracer implements Tracer {
  readonly #provider: BasicTracerProvider;
  readonly #settings: TracingSettings;

  constructor(settings: TracingSettings, role: string, log: Pick<Logger, 'warn'>) {
    this.#settings = settings;
    const { endpoint, headers, serviceName } = settings;
    const exporter = new OTLPTraceExporter({ url: `${endpoint.replace(/\/+$/, '')}/v1/traces`, headers });
    this.#provider = new BasicTracerProvider({
      resource: resourceFromAttributes({
        'service.name': serviceName,
        'service.version': version,
        'sluice.role': role,
      }),
      // A request is sampled before it has a span.
      sampler: new AlwaysOnSampler(),
      spanProcessors: [new BatchSpanProcessor(exporter)],
    });
    reportFailures(log);
  }

  /** By chance alone, as a caller may choose ids and flags; unless callers are trusted to decide. */
  isSampled(caller: TraceContext | undefined): boolean {
    const { ratio, followsCallers } = this.#settings;
    if (followsCallers && caller !== undefined) return isFlagged(caller);
    return ratio === 1 || Math.random() < ratio;
  }

  start({ name, kind, parent, startedAt, attributes = {} }: SpanStart): OpenSpan {
    const within = parent === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, spanContextOf(parent));
    const options = { kind: kinds[kind], attributes: known(attributes), ...(startedAt && { startTime: startedAt }) };
    const span = this.#provider.getTracer('sluice', version).startSpan(name, options, within);
    return new Recorded(span, parent?.state);
  }

  async close(): Promise<void> {
    await withTimeout(
      this.#provider.shutdown().catch(() => undefined),
      closeMs,
    );
  }
}

class Recorded implements OpenSpan {
  readonly context: TraceContext;
  readonly #span: Span;

  constructor(span: Span, state: string | undefined) {
    const { traceId, spanId } = span.spanContext();
    this.#span = span;
    this.context = { parent: `00-${traceId}-${spanId}-01`, ...(state !== undefined && { state }) };
  }

  mark(name: string, at: number): void {
    this.#span.addEvent(name, at);
  }

  end({ name, attributes = {}, error, endedAt }: SpanEnd = {}): void {
    if (name !== undefined) this.#span.updateName(name);
    this.#span.setAttributes(known(attributes));
    if (error !== undefined) {
      this.#span.setAttribute('error.type', error);
      this.#span.setStatus({ code: SpanStatusCode.ERROR, message: error });
    }
    this.#span.end(endedAt);
  }
}

function spanContextOf({ parent }: TraceContext): Parameters<typeof trace.setSpanContext>[1] {
  const [, traceId = '', spanId = ''] = parent.split('-');
  return { traceId, spanId, traceFlags: TraceFlags.SAMPLED, isRemote: true };
}

/** The last bit of `traceparent`: its sender records the trace. */
function isFlagged({ parent }: TraceContext): boolean {
  return (Number.parseInt(parent.slice(-2), 16) & 1) === 1;
}

function known(attributes: SpanAttributes): Record<string, string | number | boolean> {
  return Object.fromEntries(Object.entries(attributes).filter((entry) => entry[1] !== undefined)) as Record<
    string,
    string | number | boolean
  >;
}

/** The library reports failed exports to its own logger. Its texts may contain headers, so they are not logged. */
function reportFailures(log: Pick<Logger, 'warn'>): void {
  let warnedAt = Number.NEGATIVE_INFINITY;
  const error = (): void => {
    if (performance.now() - warnedAt < warnMs) return;
    warnedAt = performance.now();
    log.warn('traces cannot be sent: does OTEL_EXPORTER_OTLP_ENDPOINT take OTLP over HTTP?');
  };
  const ignore = (): void => undefined;
  const logger = { error, warn: ignore, info: ignore, debug: ignore, verbose: ignore };
  diag.setLogger(logger, { logLevel: DiagLogLevel.ERROR, suppressOverrideMessage: true });
}
