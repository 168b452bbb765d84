import type { Blobs } from '../../shared/blobs/blobs.ts';
import type { Config } from '../../shared/config/config.ts';
import type { JobIdentity } from '../../shared/jobs/job-state.ts';
import type { RedisClock } from '../../shared/redis/redis-clock.ts';
import { writtenVersion } from '../../shared/runtime/wire-version.ts';
import { idempotencyMs } from '../admission/admit.ts';
import { idempotencyHash, type Preferences } from '../admission/preferences.ts';
import type { Submission } from '../admission/submission.ts';
import { packViewOptions } from '../replies/view.ts';
import type { Context } from '../state.ts';
import type { Endpoint } from './endpoint.ts';
import type { ReadRequest } from './parse-request.ts';
import type { ParsedRequest } from './parsed-request.ts';

/** Dependencies of `describeJob`. */
export interface DescribeJobDependencies {
  readonly blobs: Blobs;
  readonly config: Config;
  readonly clock: RedisClock;
}

/** A request as it is submitted, once it is resolved and checked. */
export async function describeJob(
  ctx: Context,
  services: DescribeJobDependencies,
  endpoint: Endpoint,
  { parsed, bodyHash, share }: ReadRequest,
  preferences: Preferences,
): Promise<Submission> {
  const { facts } = ctx.state;
  facts.model = parsed.model;
  facts.stream = parsed.stream;
  const viewOptions = await packViewOptions(services.blobs.of(ctx.state.caller.account), parsed.viewOptions);
  return {
    job: identify(services, ctx, endpoint, { parsed, viewOptions }, preferences),
    caller: ctx.state.caller,
    parsed,
    bodyHash,
    isAwaited: !parsed.background && !preferences.respondAsync,
    cancelsOnLeave: !parsed.background && cancelsOnLeave(ctx, preferences),
    trace: ctx.state.trace,
    share,
  };
}

function identify(
  { config, clock }: DescribeJobDependencies,
  ctx: Context,
  endpoint: Endpoint,
  { parsed, viewOptions }: { readonly parsed: ParsedRequest; readonly viewOptions: string },
  preferences: Preferences,
): JobIdentity {
  const { caller, jobId } = ctx.state;
  const now = clock.now();
  const isKeyed = preferences.idempotencyKey !== undefined;
  const isBackground = parsed.background === true;
  const kept = preferences.respondAsync || parsed.store ? config.resultMs : 0;
  // The caller's timeout does not apply to work that it does not wait for.
  const deadlineMs = isBackground ? config.backgroundDeadlineMs : (preferences.deadlineMs ?? config.deadlineMs);
  const goesOn = isBackground || isKeyed || preferences.respondAsync;
  return {
    v: writtenVersion(),
    id: jobId,
    account: caller.account,
    apiKeyId: caller.apiKeyId,
    capability: endpoint.capability,
    endpoint: endpoint.name,
    model: parsed.model,
    // Bytes are stored whole for later; nobody reads them as a stream.
    stream: parsed.stream && !(preferences.respondAsync && endpoint.view.bytes?.(parsed) !== undefined),
    createdAt: now,
    deadlineAt: now + deadlineMs,
    retentionMs: isKeyed ? Math.max(kept, idempotencyMs) : kept,
    idempotency: idempotencyHash(ctx, endpoint, preferences),
    viewOptions,
    metadata: parsed.metadata,
    resource: parsed.store ? (goesOn ? 'background' : 'foreground') : undefined,
  };
}

/** Keyed and asynchronous jobs continue without their caller; for plain ones the header decides, or else the key. */
function cancelsOnLeave({ state }: Context, preferences: Preferences): boolean {
  if (preferences.respondAsync || preferences.idempotencyKey !== undefined) return false;
  return (preferences.onDisconnect ?? state.caller.onDisconnect ?? 'cancel') === 'cancel';
}
