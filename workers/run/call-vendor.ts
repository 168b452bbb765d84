import { Upload } from '../../shared/blobs/upload.ts';
import { repeatable } from '../../shared/capabilities/capability.ts';
import type { VideoJob } from '../../shared/capabilities/video.ts';
import { type RoutedModel, routeName } from '../../shared/catalogue/catalogue.ts';
import { ApiError } from '../../shared/errors.ts';
import { startedTooLate } from '../../shared/jobs/end-errors.ts';
import { servedText } from '../../shared/jobs/job-state.ts';
import { countAllTokens, hasImpossibleAmount } from '../../shared/money/token-counts.ts';
import type { QueuedJob } from '../../shared/queue/queue.ts';
import { execute } from '../execute/execute.ts';
import { endpointsOfSeveralCalls, type Pause, withOutputLimit } from '../execute/execution.ts';
import { SaturatedError } from '../pacing/saturated-error.ts';
import type { CallDemand } from '../routing/admit-call.ts';
import { isCallersFault, isRefusedKey } from '../routing/failure.ts';
import type { RouteTarget } from '../routing/route-plan.ts';
import type { CallLimits, RoutedJob } from '../routing/router.ts';
import { type RequestBody, requestText } from '../vendors/request-body.ts';
import type { JobAnswer, VendorCall } from '../vendors/vendor.ts';
import type { WorkerContext } from '../worker-context.ts';
import { rememberTask } from './discard-task.ts';
import type { Ending } from './finish-run.ts';
import { followTask } from './follow-task.ts';
import type { FrameWriter } from './frame-writer.ts';
import { callFiles, type JobRun } from './job-run.ts';

/** Calls a vendor for a job, or takes the next step of a task that it runs for the job. */
export async function callVendor(
  context: WorkerContext,
  run: JobRun,
  writer: FrameWriter,
): Promise<Ending | { readonly outcome: 'saturated'; readonly error: SaturatedError }> {
  try {
    const { task } = run;
    if (isTooLate(context, run)) throw startedTooLate();
    const answer =
      task === undefined
        ? await callRoutes(context, run, writer)
        : await followTask(context, run, writer, task, () => readRequest(context, run));
    if ('body' in answer) return { outcome: 'completed', answer: checked(answer) };
    if (answer.error !== undefined) logFailure(context, run, answer.error);
    return { outcome: 'paused', ...answer };
  } catch (thrown) {
    if (thrown instanceof SaturatedError && run.stopReason === undefined)
      return { outcome: 'saturated', error: thrown };
    const error = ApiError.from(thrown);
    logFailure(context, run, error);
    return { outcome: 'failed', error };
  } finally {
    if (run.held > 0) context.requestMemory.release(run);
  }
}

/** Whether a job that no vendor was called for, in no attempt, should have started by now. */
function isTooLate({ clock }: WorkerContext, { job, task, attempt = 0, withdrawn }: JobRun): boolean {
  return job.startBy !== undefined && task === undefined && attempt - withdrawn === 1 && clock.now() >= job.startBy;
}

/**
 * Returns the answer if its usage is plausible. Implausible usage is the vendor's error: it would be charged, and added to
 * the sums for good.
 */
function checked(answer: JobAnswer): JobAnswer {
  if (!hasImpossibleAmount(answer.usage, { ...answer.quantities })) return answer;
  throw new ApiError('server_error', "The model's vendor reported a usage that cannot be true.", {
    cause: new Error('impossible usage'),
  });
}

async function callRoutes(context: WorkerContext, run: JobRun, writer: FrameWriter): Promise<JobAnswer | Pause> {
  const request = await readRequest(context, run);
  const limited = run.job.outputLimit === undefined ? request : withOutputLimit(request, run.job);
  return await context.router.run(new RoutedRun(context, run, writer, limited));
}

/** A run's job for the router: with methods, as an open stream would keep a closure for each of them. */
class RoutedRun implements RoutedJob<JobAnswer | Pause> {
  readonly routes: readonly RoutedModel[];
  readonly account: string | undefined;
  readonly affinity: string | undefined;
  readonly deadlineAt: number;
  readonly sink: FrameWriter;
  readonly request: RequestBody;
  readonly earlierCalls: number;
  readonly #context: WorkerContext;
  readonly #run: JobRun;

  constructor(context: WorkerContext, run: JobRun, writer: FrameWriter, request: RequestBody) {
    const { job } = run;
    const { routes, account } = wantedRoutes(context, run, request);
    this.routes = routes;
    this.account = account;
    run.needsItsKey = account !== undefined && routes.some(({ route }) => context.vendors.keysOf(route.vendor) > 1);
    this.affinity = job.affinity === undefined ? undefined : `${job.account} ${job.affinity}`;
    // The router uses this host's clock.
    this.deadlineAt = Date.now() + job.deadlineAt - context.clock.now();
    this.sink = writer;
    this.request = request;
    this.earlierCalls = run.callsInAll - 1;
    this.#context = context;
    this.#run = run;
  }

  get owner(): string {
    return this.#run.job.account;
  }

  get repeatable(): boolean {
    return repeatable[this.#run.job.capability];
  }

  get stream(): boolean {
    return this.#run.job.stream;
  }

  get signal(): AbortSignal {
    return this.#run.signal;
  }

  onCall({ routed }: RouteTarget, calls: number): void {
    const run = this.#run;
    const { vendor } = routed.route;
    run.vendor = vendor;
    run.routed = routed;
    run.calls = calls;
    run.isAtWork = true;
    run.openAnswer = undefined;
    run.calledAt ??= performance.now();
    run.servedModel = routed.id === run.job.model ? undefined : routed.id;
    // Whoever settles the job if this worker is killed has no other sign of the route, which has prices of its own.
    const isOneOfSeveral = this.routes.some(
      (other) => other !== routed && other.id === routed.id && other.route.vendor === vendor,
    );
    const routeModel = isOneOfSeveral ? routed.route.model : undefined;
    this.sink.served = servedText({ vendor, calls: run.callsInAll, model: run.servedModel, routeModel });
  }

  onFailure(): void {
    this.#run.isAtWork = false;
  }

  call(target: RouteTarget, limits: CallLimits): Promise<JobAnswer | Pause> {
    const run = this.#run;
    if (run.spans === undefined) return executeOn(this.#context, run, target, limits, this);
    return run.spans.call(target, run.callsInAll, () => executeOn(this.#context, run, target, limits, this));
  }

  demand(maxRetryAfterMs: number): CallDemand {
    return { ...demandOf(this.#context, this.#run, this.request), maxRetryAfterMs };
  }

  onCapacity(route: string, of: 'route' | 'vendor'): void {
    this.#context.parking(this.#run.job).hasCapacity(route, of);
  }

  tokensOf(answer: JobAnswer | Pause): number | undefined {
    return 'usage' in answer ? countAllTokens(answer.usage) : undefined;
  }
}

/** Characters of a token, roughly. */
const charactersOfToken = 4;

/**
 * What a job needs of its vendor. One that has waited for a route already is not behind those that still wait for it, and one that
 * needs a certain key is in no line.
 */
function demandOf(
  { parking }: WorkerContext,
  { job, parkedFor, needsItsKey }: JobRun,
  request: RequestBody,
): Omit<CallDemand, 'maxRetryAfterMs'> {
  return {
    inputTokens: job.inputTokens ?? Math.ceil(request.length / charactersOfToken),
    maxOutput: job.outputLimit,
    lineOf: (route) => {
      const line = route === parkedFor || needsItsKey ? undefined : parking(job).lineOf(route);
      // As many are expected to wait in each shard of its queue.
      return line && { ...line, waiting: line.waiting * (job.shards ?? 1) };
    },
  };
}

/**
 * A job's request. A large one waits here for room in memory, together with the files that its vendor may get inside it: jobs that held
 * a part, and waited for more, would wait for each other.
 */
async function readRequest(context: WorkerContext, run: JobRun): Promise<RequestBody> {
  const { request, requestBlob = '', requestBytes = 0, account } = run.job;
  if (request !== undefined) return request;
  const bytes = requestBytes + (run.task === undefined ? embeddedBytes(context, run.job) : 0);
  if (bytes > 0 && run.held === 0) {
    await context.requestMemory.take(run, bytes);
    if (isTooLate(context, run)) throw startedTooLate();
  }
  return await context.blobs.ofRecords(account).bytes(requestBlob, requestBytes || undefined);
}

/** Bytes of the uploads that a job's vendor may get inside its request. */
function embeddedBytes({ catalogue }: WorkerContext, { model, capability, uploads = [] }: QueuedJob): number {
  if (uploads.length === 0) return 0;
  if (!catalogue.routes(model, capability).some(({ vendorRow }) => vendorRow.embedsFiles)) return 0;
  return uploads.reduce((sum, { bytes }) => sum + bytes, 0);
}

/** The routes that may serve a job. A remix goes to the vendor and account that have the earlier result. */
function wantedRoutes(
  { catalogue }: WorkerContext,
  { job }: JobRun,
  request: RequestBody,
): { readonly routes: readonly RoutedModel[]; readonly account?: string } {
  const { excludedRoutes = [] } = job;
  const all = catalogue.routes(job.model, job.capability);
  const remixed = job.capability === 'video' ? (JSON.parse(requestText(request)) as VideoJob).remixed : null;
  if (remixed !== null) {
    const routes = all.filter(({ route }) => route.vendor === remixed.vendor);
    return { routes, ...(remixed.account !== undefined && { account: remixed.account }) };
  }
  if (excludedRoutes.length === 0) return { routes: all };
  return { routes: all.filter(({ route }) => !excludedRoutes.includes(routeName(route))) };
}

function executeOn(
  context: WorkerContext,
  run: JobRun,
  { routed, account }: RouteTarget,
  { signal, silenceMs, sink }: CallLimits,
  asking: RoutedRun,
): Promise<JobAnswer | Pause> {
  const { job } = run;
  const { request } = asking;
  const { stream, endpoint, addsCacheBreakpoints } = job;
  const { vendor } = account;
  const { model } = routed.route;
  const work = (call: VendorCall): Promise<JobAnswer | Pause> =>
    execute[job.capability]({
      vendor,
      row: routed,
      endpoint,
      sink,
      keep: job.retentionMs > 0,
      call,
      part: endpointsOfSeveralCalls.has(endpoint) ? context.router.parts(asking, { routed, account }) : undefined,
      dropsUnsupported: job.dropsUnsupported === true,
      rememberTask: (task) => {
        const prices = routed.prices && { prices: routed.prices };
        return rememberTask(context, run, { vendor: vendor.name, account: account.id, model, task, ...prices });
      },
    });
  const asked: VendorCall = {
    model,
    stream,
    request,
    addsCacheBreakpoints,
    hasCachePrices: addsCacheBreakpoints && hasCachePrices(routed),
    uploads: job.uploads?.map((record) => new Upload(record)) ?? [],
    signal,
    silenceMs,
    files: callFiles(context.blobs, job.account),
    memory: { addFile: (bytes) => context.requestMemory.add(run, bytes) },
    run,
    holder: run,
  };
  const passed = account.media === undefined ? asked : account.media.pass(asked);
  // Nearly every call passes synchronously, and then nothing is awaited.
  return passed instanceof Promise ? passed.then(work) : work(passed);
}

function hasCachePrices({ prices }: RoutedModel): boolean {
  return prices?.cachedInput !== undefined || prices?.cacheWrite !== undefined;
}

function logFailure(context: WorkerContext, run: JobRun, error: ApiError): void {
  if (error.cause === undefined || run.stopReason !== undefined) return;
  // Never the error's message: a vendor's often quotes the prompt.
  const about = { job: run.job.id, code: error.code };
  // The caller's mistake, which is reported to the caller: nothing for the operator to investigate.
  if (isCallersFault(error)) {
    context.log.info({ ...about, vendorStatus: error.vendorStatus }, 'vendor rejected the request');
    return;
  }
  // The router has already logged it, once.
  if (isRefusedKey(error)) return;
  context.log.warn({ err: error.cause, ...about }, 'vendor call failed');
}
