import { createHash } from 'node:crypto';
import type { JobIdentity } from '../../shared/jobs/job-state.ts';
import { idempotencyMs } from '../admission/admit.ts';
import { type Limits, limitHeaders } from '../admission/limit-headers.ts';
import type { Preferences } from '../admission/preferences.ts';
import type { Submission } from '../admission/submit.ts';
import { nameJob } from '../middleware/request-id.ts';
import type { Services } from '../services.ts';
import type { Context } from '../state.ts';
import { packViewOptions } from '../view-options.ts';
import type { Endpoint, Prepared } from './endpoint.ts';
import type { ReadRequest } from './read-request.ts';

/** A request as it is submitted, once it is resolved and checked. */
export async function makeSubmission(
  ctx: Context,
  services: Services,
  endpoint: Endpoint,
  { prepared, bodyHash, share }: ReadRequest,
  preferences: Preferences,
): Promise<Submission> {
  const { facts } = ctx.state;
  facts.model = prepared.model;
  facts.stream = prepared.stream;
  const viewOptions = await packViewOptions(services.blobs.of(ctx.state.caller.account), prepared.viewOptions);
  return {
    job: identify(services, ctx, endpoint, { prepared, viewOptions }, preferences),
    caller: ctx.state.caller,
    prepared,
    bodyHash,
    cancelsOnLeave: !prepared.background && cancelsOnLeave(ctx, preferences),
    onAdmitted: (limits) => {
      nameJob(ctx, ctx.state.jobId);
      showLimits(ctx, limits);
    },
    onQueued: share && (() => share.close()),
  };
}

function identify(
  { config, clock }: Services,
  ctx: Context,
  endpoint: Endpoint,
  { prepared, viewOptions }: { readonly prepared: Prepared; readonly viewOptions: string },
  preferences: Preferences,
): JobIdentity {
  const { caller, jobId } = ctx.state;
  const now = clock.now();
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
    idempotency: idempotencyHash(ctx, endpoint, preferences),
    viewOptions,
    metadata: prepared.metadata,
    resource: prepared.store ? (goesOn ? 'background' : 'foreground') : undefined,
  };
}

/** What names an idempotency key and where it holds; '' for a request without one. */
export function idempotencyHash(ctx: Context, endpoint: Endpoint, { idempotencyKey }: Preferences): string {
  return idempotencyKey === undefined ? '' : sha256(idempotencyScope(ctx, endpoint) + idempotencyKey);
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

/** Shows the limits of the key in the headers of an answer that is still to begin. */
function showLimits({ res }: Context, limits: Limits): void {
  if (res.headersSent) return;
  const headers = limitHeaders(limits);
  for (const name in headers) res.setHeader(name, headers[name] as string);
}

/** Hexadecimal. */
export function sha256(content: string | Uint8Array): string {
  return createHash('sha256').update(content).digest('hex');
}
