import { createHash } from 'node:crypto';
import type { JobIdentity } from '../../shared/jobs/job-state.ts';
import { idempotencyMs } from '../admission/admit.ts';
import type { Preferences } from '../admission/preferences.ts';
import type { Limits, Submission } from '../admission/submit.ts';
import type { Services } from '../services.ts';
import type { Context } from '../state.ts';
import { packViewOptions } from '../view-options.ts';
import type { Endpoint, Prepared } from './endpoint.ts';

/** A request as it is submitted, once it is resolved and checked. */
export async function makeSubmission(
  ctx: Context,
  services: Services,
  endpoint: Endpoint,
  { prepared, bodyHash }: { readonly prepared: Prepared; readonly bodyHash: string },
  preferences: Preferences,
): Promise<Submission> {
  ctx.state.facts.model = prepared.model;
  ctx.state.facts.stream = prepared.stream;
  return {
    job: await identify(services, ctx, endpoint, prepared, preferences),
    caller: ctx.state.caller,
    prepared,
    bodyHash,
    cancelsOnLeave: !prepared.background && cancelsOnLeave(ctx, preferences),
    onAdmitted: (limits) => showLimits(ctx, limits),
  };
}

async function identify(
  services: Services,
  ctx: Context,
  endpoint: Endpoint,
  prepared: Prepared,
  preferences: Preferences,
): Promise<JobIdentity> {
  const { config } = services;
  const { caller, jobId } = ctx.state;
  const now = Date.now();
  const isKeyed = preferences.idempotencyKey !== undefined;
  const isBackground = prepared.background === true;
  const kept = preferences.respondAsync || prepared.store ? config.resultMs : 0;
  // How long its caller waits for the answer says nothing of work that nobody waits for.
  const deadlineMs = isBackground ? config.backgroundDeadlineMs : (preferences.deadlineMs ?? config.deadlineMs);
  const goesOn = isBackground || isKeyed || preferences.respondAsync;
  return {
    id: jobId,
    account: caller.account,
    apiKeyId: caller.apiKeyId,
    capability: endpoint.capability,
    endpoint: endpoint.name,
    model: prepared.model,
    // Bytes are stored whole for later; nobody reads them as they grow.
    stream: prepared.stream && !(preferences.respondAsync && endpoint.view.bytes?.(prepared) !== undefined),
    createdAt: now,
    deadlineAt: now + deadlineMs,
    retentionMs: isKeyed ? Math.max(kept, idempotencyMs) : kept,
    idempotency: isKeyed ? sha256(idempotencyScope(ctx, endpoint) + preferences.idempotencyKey) : '',
    viewOptions: await packViewOptions(services.blobs, prepared.viewOptions),
    ...(prepared.store && { resource: goesOn ? 'background' : 'foreground' }),
  };
}

/** Where an idempotency key holds: one used on two endpoints, or for two videos to remix, is two requests. */
function idempotencyScope({ params }: Context, { name }: Endpoint): string {
  return [name, ...Object.values((params ?? {}) as Record<string, string>), ''].join(' ');
}

/** Keyed and asynchronous jobs go on without their caller; a plain one as the header, or else its key, says. */
function cancelsOnLeave({ state }: Context, preferences: Preferences): boolean {
  if (preferences.respondAsync || preferences.idempotencyKey !== undefined) return false;
  return (preferences.onDisconnect ?? state.caller.onDisconnect ?? 'cancel') === 'cancel';
}

/** The limit in force is on unfinished requests; a place is free again when one of them ends. */
function showLimits({ res }: Context, { running, concurrency }: Limits): void {
  if (res.headersSent) return;
  res.setHeader('x-ratelimit-limit-requests', concurrency);
  res.setHeader('x-ratelimit-remaining-requests', Math.max(0, concurrency - running));
  res.setHeader('x-ratelimit-reset-requests', '1s');
}

/** Hexadecimal. */
export function sha256(content: string | Uint8Array): string {
  return createHash('sha256').update(content).digest('hex');
}
