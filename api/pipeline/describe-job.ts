import type { Priority } from '../../shared/accounts/api-key.ts';
import type { Blobs } from '../../shared/blobs/blobs.ts';
import { isOfPromptCacheKey, sessionAffinity } from '../../shared/capabilities/chat.ts';
import type { Config } from '../../shared/config/config.ts';
import { ApiError } from '../../shared/errors.ts';
import type { JobIdentity } from '../../shared/jobs/job-state.ts';
import { type QueueShards, shardedVersion } from '../../shared/queue/queue-shards.ts';
import type { RedisClock } from '../../shared/redis/redis-clock.ts';
import { versionOf, writtenVersion } from '../../shared/runtime/wire-version.ts';
import type { AccountLoader } from '../admission/account-loader.ts';
import { idempotencyMs } from '../admission/admit.ts';
import { cacheMsOf, idempotencyHash, type Preferences } from '../admission/preferences.ts';
import type { Submission } from '../admission/submission.ts';
import type { CallerDirectory } from '../auth/authenticate.ts';
import type { Caller } from '../auth/caller.ts';
import { packViewOptions } from '../replies/view.ts';
import type { Context } from '../state.ts';
import { cacheName, showCache } from './answer-cache.ts';
import type { Endpoint } from './endpoint.ts';
import type { ReadRequest } from './parse-request.ts';
import type { ParsedRequest } from './parsed-request.ts';
import { sharedName } from './single-flight.ts';

/** Dependencies of `describeJob`. */
export interface DescribeJobDependencies {
  readonly blobs: Blobs;
  readonly config: Config;
  readonly clock: RedisClock;
  readonly shards: Pick<QueueShards, 'forNewJobs'>;
  readonly accounts: AccountLoader;
  readonly callers: CallerDirectory;
}

/** A request as it is submitted, once it is resolved and checked. @throws ApiError 403 if it may not have the priority it asks for. */
export async function describeJob(
  ctx: Context,
  services: DescribeJobDependencies,
  endpoint: Endpoint,
  { parsed, bodyHash, retryName, share }: ReadRequest,
  preferences: Preferences,
): Promise<Submission> {
  const { facts } = ctx.state;
  facts.model = parsed.model;
  facts.stream = parsed.stream;
  const viewOptions = await packViewOptions(services.blobs, ctx.state.caller.account, parsed.viewOptions);
  const lane = await laneByNewestKey(services, ctx, endpoint, parsed, preferences);
  const cacheMs = cacheMsOf(preferences, ctx.state.caller);
  // A job with a time to start by has terms of its own, which would end the requests of others.
  const mayShare = cacheMs > 0 && preferences.startByMs === undefined;
  const cached = mayShare ? cacheName(ctx, endpoint, parsed, preferences) : undefined;
  // A key's setting asks for nothing that a request may miss.
  if (preferences.cacheMs && cached === undefined) showCache(ctx, 'bypass');
  const wantsSharing = preferences.singleFlight ?? ctx.state.caller.singleFlight;
  const shared = wantsSharing ? sharedName(ctx, endpoint, parsed, preferences, lane) : undefined;
  // Background work is answered at once, and goes on without its caller. A retry finds a shared job, or a cached answer, as any
  // identical request does.
  const retried = parsed.background || (cached ?? shared) !== undefined ? undefined : retryName;
  const isAwaited = !parsed.background && !preferences.respondAsync;
  const names = { cached, shared, retryName: retried };
  return {
    job: identify(services, ctx, endpoint, { parsed, viewOptions, lane, ...names }, preferences),
    caller: ctx.state.caller,
    parsed,
    // The name of a cached answer, or of a shared job, says it all.
    bodyHash: (cached ?? shared) === undefined ? bodyHash : '-',
    cacheMs: cached === undefined ? undefined : cacheMs,
    ...(cached !== undefined && preferences.cacheMs === undefined && { isCachedByKey: true }),
    ...(shared !== undefined && { isShared: true }),
    ...(isAwaited &&
      mayOutlast(preferences, parsed, cached ?? shared) && { ownDeadlineAt: ownDeadlineAt(services, preferences) }),
    isRetry: retried !== undefined && (preferences.retries ?? 0) > 0,
    isAwaited,
    cancelsOnLeave: !parsed.background && cached === undefined && cancelsOnLeave(ctx, preferences),
    affinity: affinityOf(ctx, parsed),
    trace: ctx.state.trace,
    share,
  };
}

/**
 * Whether a job may take longer than its caller's timeout, which client libraries send on their own: it goes on without its caller, for
 * others or for a repeat, or its answer is a stream, for whose beginning they wait that long.
 * @param name of a cached answer, or of a shared job
 */
function mayOutlast(
  { idempotencyKey, respondAsync }: Preferences,
  { stream }: ParsedRequest,
  name: string | undefined,
): boolean {
  return stream || name !== undefined || idempotencyKey !== undefined || respondAsync;
}

/** When the caller of such a job stops waiting, or of a stream, waiting for its beginning. */
function ownDeadlineAt({ clock, config }: DescribeJobDependencies, { deadlineMs }: Preferences): number {
  return clock.now() + (deadlineMs ?? config.deadlineMs);
}

/**
 * Headers by which agents name their sessions: Codex, Claude Code, LiteLLM's. Node has their names in lower case.
 */
export const sessionHeaders = [
  'session_id',
  'session-id',
  'x-claude-code-session-id',
  'x-litellm-session-id',
  'x-session-id',
];

/** A key that the request names itself precedes its session: several sessions may share it, as OpenAI documents it. */
function affinityOf({ headers }: Context, { affinity }: ParsedRequest): string | undefined {
  if (affinity === undefined || isOfPromptCacheKey(affinity)) return affinity;
  for (const name of sessionHeaders) {
    const session = headers[name];
    if (typeof session === 'string' && session !== '') return sessionAffinity(session);
  }
  return affinity;
}

/** What is known of a job before its identity. */
interface DescribedBefore {
  readonly viewOptions: string;
  readonly cached: string | undefined;
  readonly shared: string | undefined;
}

function identify(
  { config, clock, shards }: DescribeJobDependencies,
  ctx: Context,
  endpoint: Endpoint,
  {
    parsed,
    viewOptions,
    lane,
    cached,
    shared,
    retryName,
  }: Pick<ReadRequest, 'parsed' | 'retryName'> & Pick<JobIdentity, 'lane'> & DescribedBefore,
  preferences: Preferences,
): JobIdentity {
  const { caller, jobId } = ctx.state;
  const now = clock.now();
  const shardCount = writtenVersion() >= shardedVersion ? shards.forNewJobs : undefined;
  // Processes of releases before that version would look for such a job in another queue, or begin it too late.
  const isUnknownBefore = shardCount !== undefined || preferences.startByMs !== undefined;
  const isKeyed = preferences.idempotencyKey !== undefined;
  const isBackground = parsed.background === true;
  const cacheMs = cacheMsOf(preferences, caller);
  const kept = preferences.respondAsync || parsed.store ? config.resultMs : cached === undefined ? 0 : cacheMs;
  const ownMs = preferences.deadlineMs ?? config.deadlineMs;
  const name = cached ?? shared;
  const awaitedMs = mayOutlast(preferences, parsed, name) ? Math.max(ownMs, config.deadlineMs) : ownMs;
  const deadlineMs = isBackground ? config.backgroundDeadlineMs : awaitedMs;
  const goesOn = isBackground || isKeyed || preferences.respondAsync;
  return {
    v: versionOf(isUnknownBefore ? shardedVersion : undefined),
    id: jobId,
    account: caller.account,
    apiKeyId: caller.apiKeyId,
    capability: endpoint.capability,
    endpoint: endpoint.name,
    model: parsed.model,
    shards: shardCount,
    // Bytes are stored whole for later; nobody reads them as a stream.
    stream: parsed.stream && !(preferences.respondAsync && endpoint.view.bytes?.(parsed) !== undefined),
    createdAt: now,
    deadlineAt: now + deadlineMs,
    isOwnDeadline: deadlineMs === preferences.deadlineMs && !goesOn && name === undefined ? true : undefined,
    startBy: preferences.startByMs === undefined ? undefined : now + preferences.startByMs,
    lane,
    retentionMs: isKeyed ? Math.max(kept, idempotencyMs) : kept,
    idempotency: name ?? idempotencyHash(ctx, endpoint, preferences),
    retryName,
    viewOptions,
    metadata: parsed.metadata,
    resource: parsed.store ? (goesOn ? 'background' : 'foreground') : undefined,
  };
}

const priorityRanks: Readonly<Record<Priority, number>> = { low: 0, normal: 1, high: 2 };

/**
 * The lane of a request: as the header says, or else its `service_tier`, or else its key. Only the header is refused if it asks for
 * more than the key and its account may have; the others get what is allowed. Videos have none: what they take of a worker is little.
 * @throws ApiError 403 that names the header.
 */
export async function laneOf(
  { accounts }: Pick<DescribeJobDependencies, 'accounts'>,
  { account, priority: usual = 'normal', maxPriority = 'normal' }: Caller,
  { capability }: Pick<Endpoint, 'capability'>,
  { extras }: ParsedRequest,
  { priority: asked }: Preferences,
): Promise<JobIdentity['lane']> {
  const wanted = asked ?? priorityOfTier(extras) ?? usual;
  // Of accounts only operators decide.
  const allowed = wanted === 'high' && maxPriority === 'high' ? await accounts.maxPriority(account) : maxPriority;
  const isAllowed = priorityRanks[wanted] <= priorityRanks[allowed];
  if (!isAllowed && asked !== undefined) throw priorityNotAllowed(asked, allowed);
  const priority = isAllowed ? wanted : allowed;
  if (priority === 'normal' || capability === 'video') return undefined;
  return priority === 'low' ? 'flex' : 'high';
}

/**
 * The same for a running request. The cached key may be stale, so a refusal only counts with the key's current settings, which
 * `ctx.state.caller` then has.
 * @throws ApiError as `laneOf`, 401 if the key is no longer valid.
 */
async function laneByNewestKey(
  services: DescribeJobDependencies,
  { state }: Context,
  endpoint: Endpoint,
  parsed: ParsedRequest,
  preferences: Preferences,
): Promise<JobIdentity['lane']> {
  const { caller } = state;
  try {
    return await laneOf(services, caller, endpoint, parsed, preferences);
  } catch (error) {
    state.caller = await services.callers.assertActiveSoon(caller);
    if (state.caller === caller) throw error;
    return await laneOf(services, state.caller, endpoint, parsed, preferences);
  }
}

function priorityOfTier(extras: ParsedRequest['extras'] = []): Priority | undefined {
  if (extras.some(({ name }) => name === 'service_tier.flex')) return 'low';
  return extras.some(({ name }) => name === 'service_tier.priority') ? 'high' : undefined;
}

function priorityNotAllowed(asked: Priority, allowed: Priority): ApiError {
  const both =
    asked === 'high' ? ' "high" takes max_priority "high" of the key, and of its account by the operator.' : '';
  return new ApiError(
    'permission_denied',
    `X-Sluice-Priority: this API key may not use "${asked}", but up to "${allowed}".${both}`,
    { param: 'X-Sluice-Priority' },
  );
}

/** Keyed and asynchronous jobs continue without their caller; for plain ones the header decides, or else the key. */
function cancelsOnLeave({ state }: Context, preferences: Preferences): boolean {
  if (preferences.respondAsync || preferences.idempotencyKey !== undefined) return false;
  return (preferences.onDisconnect ?? state.caller.onDisconnect ?? 'cancel') === 'cancel';
}
