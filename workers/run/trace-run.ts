import { codeOf } from '../../shared/runtime/error-code.ts';
import { inTrace } from '../../shared/tracing/trace-context.ts';
import type { OpenSpan, Tracer } from '../../shared/tracing/tracer.ts';
import type { RouteTarget } from '../routing/route-plan.ts';
import type { WorkerContext } from '../worker-context.ts';
import type { JobRun, RunSpans } from './job-run.ts';

/** Names of the GenAI semantic conventions (1.37.0), by the rows of vendors; others go by their own, and so does all that is like OpenAI. */
const providers: ReadonlyMap<string, string> = new Map([
  ...['anthropic', 'deepseek', 'groq', 'perplexity'].map((name) => [name, name] as const),
  ['azure', 'azure.ai.openai'],
  ['bedrock', 'aws.bedrock'],
  ['gemini', 'gcp.gemini'],
  ['mistral', 'mistral_ai'],
  ['xai', 'x_ai'],
]);

/** Spans of one run of a job, if its request is traced: the wait before it, the run, each call of a vendor. */
export class RunTrace implements RunSpans {
  readonly #tracer: Tracer;
  readonly #run: OpenSpan;

  private constructor(tracer: Tracer, run: OpenSpan) {
    this.#tracer = tracer;
    this.#run = run;
  }

  /** Begins a run's span. Undefined if the request is not traced. */
  static begin({ tracer, workerId }: WorkerContext, { job, attempt, beganAt }: JobRun): RunTrace | undefined {
    const { trace, capability, model, createdAt } = job;
    if (tracer === undefined || trace === undefined || beganAt === undefined) return undefined;
    const attributes = { 'sluice.job.id': job.id, 'sluice.capability': capability };
    const kind = 'consumer';
    if (attempt === 1) {
      const wait = { name: 'queue', kind, parent: trace, startedAt: createdAt, attributes } as const;
      tracer.start(wait).end({ endedAt: Math.max(createdAt, beganAt) });
    }
    const more = { 'sluice.worker.id': workerId, 'sluice.attempt': attempt, 'gen_ai.request.model': model };
    const run = tracer.start({
      name: `run ${capability}`,
      kind,
      parent: trace,
      attributes: { ...attributes, ...more },
    });
    return new RunTrace(tracer, run);
  }

  /** Runs the vendor's part of the run: what it calls belongs to the run's span. */
  within<Result>(work: () => Result): Result {
    return inTrace(this.#run.context, work);
  }

  /** Makes one call of a vendor as a span of its own. Names are those of the GenAI semantic conventions 1.37.0. */
  async call<Result>({ routed }: RouteTarget, number: number, work: () => Promise<Result>): Promise<Result> {
    const { vendor, model } = routed.route;
    const operation = routed.capability === 'embedding' ? 'embeddings' : routed.capability;
    const attributes = {
      'gen_ai.operation.name': operation,
      'gen_ai.provider.name': providers.get(routed.vendorRow.name) ?? vendor,
      'sluice.vendor': vendor,
      'gen_ai.request.model': model,
      'sluice.call': number,
    };
    const span = this.#tracer.start({
      ...{ name: `${operation} ${model}`, kind: 'client', parent: this.#run.context, attributes },
    } as Parameters<Tracer['start']>[0]);
    try {
      const answer = await inTrace(span.context, work);
      span.end();
      return answer;
    } catch (error) {
      span.end({ error: codeOf(error) ?? 'other' });
      throw error;
    }
  }

  /** Ends the run's span. @param firstAt when the first frame was written, in ms since 1970 */
  end({ end, callsInAll }: JobRun, firstAt: number | undefined): void {
    if (firstAt !== undefined) this.#run.mark('first token', firstAt);
    this.#run.end({
      attributes: { 'sluice.outcome': end?.outcome, 'sluice.calls': callsInAll },
      error: end?.errorCode,
    });
  }
}
