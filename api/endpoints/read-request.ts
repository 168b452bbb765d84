import { ApiError } from '../../shared/errors.ts';
import { discardUploads } from '../admission/submit.ts';
import { ClientConnection } from '../answers/client-connection.ts';
import { isLargeBody, type LargeBodies, type PreparedLargeRequest } from '../large-bodies.ts';
import { isForm, readForm } from '../middleware/form-body.ts';
import { readBody } from '../middleware/json-body.ts';
import type { Services } from '../services.ts';
import type { Context } from '../state.ts';
import { checkByNewestKey, ignoredByAll } from './check-request.ts';
import type { Endpoint, Prepared } from './endpoint.ts';
import { sha256 } from './make-submission.ts';

/** How long Redis and the database may take to show a key. */
const keyMs = 5000;

/** A request that was read, and the hash of its body where it has an idempotency key. */
export interface ReadRequest {
  readonly prepared: Prepared;
  readonly bodyHash: string;
}

/**
 * Reads, checks and takes apart a request.
 * @param isKeyed whether it has an idempotency key
 * @throws ApiError 400, 404, 413, 415.
 */
export async function readRequest(
  ctx: Context,
  services: Services,
  endpoint: Endpoint,
  isKeyed: boolean,
): Promise<ReadRequest> {
  const read = await (isForm(ctx) ? readFormRequest : readJsonRequest)(ctx, services, endpoint, isKeyed);
  return { prepared: await complete(ctx, services, endpoint, read.prepared), bodyHash: read.bodyHash };
}

async function readJsonRequest(
  ctx: Context,
  { largeBodies }: Services,
  endpoint: Endpoint,
  isKeyed: boolean,
): Promise<ReadRequest> {
  const body = await readBody(ctx);
  if (endpoint.prepare === undefined) {
    throw new ApiError('unsupported_media_type', 'Send the body as multipart/form-data.');
  }
  const prepared = isLargeBody(body) ? await prepareLarge(ctx, largeBodies, endpoint, body) : endpoint.prepare(body);
  return { prepared, bodyHash: isKeyed ? sha256(body) : '' };
}

/** Prepares a body in the thread, unless its caller leaves first. */
async function prepareLarge(
  { res }: Context,
  largeBodies: LargeBodies,
  { name }: Endpoint,
  body: Buffer,
): Promise<PreparedLargeRequest> {
  const left = new AbortController();
  const leave = (): void => left.abort();
  res.once('close', leave);
  try {
    return await largeBodies.prepare(name, body, left.signal);
  } finally {
    res.off('close', leave);
  }
}

async function readFormRequest(
  ctx: Context,
  { blobs }: Services,
  endpoint: Endpoint,
  isKeyed: boolean,
): Promise<ReadRequest> {
  if (endpoint.prepareForm === undefined) {
    throw new ApiError('unsupported_media_type', 'Send the body as JSON, with Content-Type application/json.');
  }
  const { account } = ctx.state.caller;
  const { form, hash } = await readForm(ctx, blobs.of(account), isKeyed);
  try {
    return { prepared: endpoint.prepareForm(form), bodyHash: hash };
  } catch (error) {
    await discardUploads({ blobs }, account, form.files);
    throw error;
  }
}

/** Resolves what a request names, and holds it against its model. What it has uploaded goes when it is refused. */
async function complete(ctx: Context, services: Services, endpoint: Endpoint, read: Prepared): Promise<Prepared> {
  try {
    const prepared = endpoint.resolve === undefined ? read : await resolve(ctx, services, endpoint.resolve, read);
    const checked = await checkByNewestKey(services, endpoint, prepared, ctx.state);
    const ignored = ignoredByAll(checked);
    if (ignored === undefined) ctx.state.ignored = checked.ignored;
    else if (ignored !== '') ctx.set('x-sluice-ignored', ignored);
    const { excludedRoutes } = checked;
    return excludedRoutes.length === 0 ? prepared : { ...prepared, excludedRoutes };
  } catch (error) {
    await discardUploads(services, ctx.state.caller.account, read.files);
    throw error;
  }
}

async function resolve(
  ctx: Context,
  services: Services,
  resolveRequest: NonNullable<Endpoint['resolve']>,
  read: Prepared,
): Promise<Prepared> {
  const connection = new ClientConnection(ctx.res, services.handover);
  try {
    const { account } = ctx.state.caller;
    return await resolveRequest(read, {
      services,
      account,
      params: ctx.params as Record<string, string>,
      connection,
      assertActive: async () => {
        ctx.state.caller = await connection.wait(services.callers.assertActive(ctx.state.caller), keyMs);
      },
    });
  } finally {
    connection.close();
  }
}
