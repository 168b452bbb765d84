import type { Middleware } from 'koa';
import { readTraceContext, traceIdOf } from '../../shared/tracing/trace-context.ts';
import type { OpenSpan, SpanEnd, Tracer } from '../../shared/tracing/tracer.ts';
import type { Context, State } from '../state.ts';

/** Names of operations in the GenAI semantic conventions (1.37.0), by endpoint; others have none. */
const operations: Readonly<Record<string, string>> = {
  chat: 'chat',
  messages: 'chat',
  responses: 'chat',
  completions: 'text_completion',
  embeddings: 'embeddings',
};

/** Records a span of each sampled request of the API, from its head to the end of its answer. Only in use if tracing is on. */
export function traceRequests(tracer: Tracer): Middleware<State> {
  return (ctx, next) => {
    if (!ctx.path.startsWith('/v1/')) return next();
    const caller = readTraceContext(ctx.req.headers);
    if (!tracer.isSampled(caller)) return next();
    const span = tracer.start({ name: ctx.method, kind: 'server', parent: caller });
    ctx.state.trace = span.context;
    ctx.state.facts.trace = traceIdOf(span.context);
    ctx.res.once('close', () => end(span, ctx));
    return next();
  };
}

function end(span: OpenSpan, ctx: Context): void {
  const { endpoint, streamError, facts, jobId } = ctx.state;
  const status = ctx.res.statusCode;
  const attributes: SpanEnd['attributes'] = {
    'http.request.method': ctx.method,
    'http.response.status_code': status,
    'gen_ai.operation.name': operations[endpoint],
    'gen_ai.request.model': facts.model,
    'sluice.endpoint': endpoint,
    'sluice.job.id': jobId,
    'sluice.client_request.id': facts.client_request,
    'sluice.error.code': streamError?.code,
  };
  // Of a server's spans those are errors that are its own, not its callers' mistakes.
  const error = streamError !== undefined && streamError.status >= 500 ? streamError.code : undefined;
  span.end({ name: `${ctx.method} ${endpoint}`, attributes, error });
}
