import type { Capability } from '../../shared/capabilities/capability.ts';
import { routeName } from '../../shared/catalogue/catalogue.ts';
import type { JobIdentity } from '../../shared/jobs/job-state.ts';
import { toDollars } from '../../shared/money/cost.ts';
import { highestCostOf } from '../../shared/money/hold.ts';
import type { ShardedQueue } from '../../shared/queue/sharded-queue.ts';
import type { AccountLoader } from '../admission/account-loader.ts';
import { discardUploads } from '../admission/admit-job.ts';
import type { LoadGauge } from '../admission/load-gauge.ts';
import { maximumCost } from '../admission/maximum-cost.ts';
import type { Preferences } from '../admission/preferences.ts';
import { shareOfReads } from '../bounds/body-shares.ts';
import { readMs } from '../bounds/bounded-reads.ts';
import { ClientConnection } from '../replies/client-connection.ts';
import type { Context } from '../state.ts';
import { laneOf } from './describe-job.ts';
import type { Endpoint } from './endpoint.ts';
import { type ParseRequestDependencies, parseRequest } from './parse-request.ts';
import type { ParsedRequest } from './parsed-request.ts';
import { type ValidateRequestDependencies, validateRequest } from './validate-request.ts';

/** Dependencies of quotes. */
export interface QuoteDependencies extends ParseRequestDependencies, ValidateRequestDependencies {
  readonly load: LoadGauge;
  readonly accounts: AccountLoader;
  readonly queues: ReadonlyMap<Capability, Pick<ShardedQueue, 'lineMs'>>;
}

/** What a request would meet and cost, if it were sent now. */
export interface Quote {
  readonly object: 'quote';
  readonly endpoint: string;
  readonly model: string;
  /** The vendors that may serve it, in the order in which they are tried, and the model there: another one is a fallback. */
  readonly routes: readonly { readonly vendor: string; readonly model: string }[];
  /** The maximum cost in dollars, which admission would hold; null if a route, or something that it asks for, has no price. */
  readonly max_cost: number | null;
  /** Output tokens of each choice that it includes: the requested limit, or the model's; null without a price. */
  readonly max_output_tokens: number | null;
  /**
   * Seconds until a worker would begin it, or until a vendor would have capacity for it if others wait for all of its vendors; null if
   * the rate of the queue is not known, and for one of low priority.
   */
  readonly expected_wait_seconds: number | null;
}

/** Its own media type, so that the OpenAPI document can tell it from the endpoint's answer. */
export const quoteType = 'application/vnd.sluice.quote+json';

/**
 * Handles `Prefer: quote`: parses and validates a request as usual, tells what it may cost and how long it would wait, and
 * leaves nothing of it. It counts against no limit, and tells nothing of whether the caller's balance suffices.
 */
export async function replyWithQuote(
  ctx: Context,
  services: QuoteDependencies,
  endpoint: Endpoint,
  preferences: Preferences,
): Promise<void> {
  const { share: own, parsed } = await parseRequest(ctx, services, endpoint, preferences);
  const reads = endpoint.resolve && shareOfReads(services.bodies, ctx.state.caller, own);
  const connection = new ClientConnection(ctx.res, services.handover);
  try {
    const valid = await validateRequest(ctx, services, endpoint, parsed, reads);
    ctx.state.facts.model = valid.model;
    // Admission, which usually refuses a revoked key, is not asked.
    ctx.state.caller = await connection.wait(services.callers.assertActive(ctx.state.caller), readMs);
    const lane = await laneOf(services, ctx.state.caller, endpoint, valid, preferences);
    const quote = quoteOf(services, endpoint, valid, { account: ctx.state.caller.account, lane });
    const body = await connection.wait(quote, readMs);
    ctx.set('preference-applied', 'quote');
    ctx.type = quoteType;
    ctx.body = body;
  } finally {
    connection.close();
    (reads ?? own)?.close();
    await discardUploads(services, ctx.state.caller.account, parsed.files);
  }
}

async function quoteOf(
  { catalogue, load, queues }: QuoteDependencies,
  { name, capability }: { readonly name: string; readonly capability: Capability },
  parsed: ParsedRequest,
  { account, lane }: Pick<JobIdentity, 'account' | 'lane'>,
): Promise<Quote> {
  const { model, excludedRoutes = [] } = parsed;
  const routes = catalogue.routes(model, capability).filter(({ route }) => !excludedRoutes.includes(routeName(route)));
  const cost = maximumCost({ catalogue }, { job: { model, capability }, parsed });
  const hold = cost === 'unpriced' ? undefined : cost;
  const isHigh = lane === 'high';
  const queueMs = lane === 'flex' ? undefined : load.waitOf(capability, account, isHigh);
  const lineMs = ({ route }: (typeof routes)[number]): Promise<number> | number =>
    queues.get(capability)?.lineMs(routeName(route), account, isHigh) ?? 0;
  // What nobody waits for is not begun: its error would end the process.
  const waitMs =
    queueMs === undefined ? undefined : Math.max(queueMs, Math.min(...(await Promise.all(routes.map(lineMs)))));
  return {
    object: 'quote',
    endpoint: name,
    model,
    routes: routes.map(({ id, route }) => ({ vendor: route.vendor, model: id })),
    max_cost: hold === undefined ? null : toDollars(highestCostOf(hold)),
    max_output_tokens: hold?.outputTokens ?? null,
    expected_wait_seconds: waitMs === undefined ? null : Math.round(waitMs) / 1000,
  };
}
