import { ApiError } from '../../shared/errors.ts';
import type { Preferences } from '../admission/preferences.ts';
import { discardUploads } from '../admission/submit.ts';
import { ClientConnection } from '../answers/client-connection.ts';
import type { BodyShare, BodyShares } from '../bounds/body-shares.ts';
import { isLargeBody, type LargeBodies, type PreparedLargeRequest } from '../large-bodies.ts';
import { encodingOf } from '../middleware/body-encoding.ts';
import { isForm, readForm } from '../middleware/form-body.ts';
import { type BodyWatch, readBody } from '../middleware/json-body.ts';
import type { Services } from '../services.ts';
import type { Context } from '../state.ts';
import { checkByNewestKey, ignoredByAll } from './check-request.ts';
import type { Endpoint, Prepared } from './endpoint.ts';
import { invalidParameter } from './invalid-request.ts';
import { idempotencyHash, sha256 } from './make-submission.ts';

/** How long Redis and the database may take to show a key. */
const keyMs = 5000;

/** A request that was read, and the hash of its body where it has an idempotency key. */
export interface ReadRequest {
  readonly prepared: Prepared;
  readonly bodyHash: string;
  /** What it takes until it is queued, where that is counted. Whoever gets it closes it. */
  readonly share?: BodyShare | undefined;
}

/** A request that is being read. */
interface Reading {
  readonly ctx: Context;
  readonly services: Services;
  readonly endpoint: Endpoint;
  readonly preferences: Preferences;
  readonly share: BodyShare | undefined;
}

/**
 * Reads, checks and takes apart a request. What was read of one that is refused is not counted any more.
 * @throws ApiError 400, 404, 413, 415; of a large one also what admission would refuse its caller for; 429 for too many at
 * a time.
 */
export async function readRequest(
  ctx: Context,
  services: Services,
  endpoint: Endpoint,
  preferences: Preferences,
): Promise<ReadRequest> {
  const [shares, read] = isForm(ctx)
    ? ([services.uploads, readFormRequest] as const)
    : ([services.bodies, readJsonRequest] as const);
  const share = openShare(ctx, shares);
  try {
    const { prepared, bodyHash } = await read({ ctx, services, endpoint, preferences, share });
    return { prepared: await complete(ctx, services, endpoint, prepared), bodyHash, share };
  } catch (error) {
    share?.close();
    throw error;
  }
}

/** What has come whole already is not worth counting, unless it is to be unpacked. */
function openShare({ req, state }: Context, shares: BodyShares): BodyShare | undefined {
  return req.complete && encodingOf(req) === undefined ? undefined : shares.open(state.caller);
}

function watchOf({ ctx, services, endpoint, preferences, share }: Reading): BodyWatch | undefined {
  if (share === undefined) return undefined;
  return {
    beforeLarge: async () => {
      services.disk.assertRoom();
      const { caller } = ctx.state;
      ctx.state.caller = await services.bodyGate.assertMayBegin(caller, idempotencyHash(ctx, endpoint, preferences));
    },
    grow: (bytes) => {
      share.grow(bytes);
      if (isForm(ctx)) services.disk.assertRoom();
    },
  };
}

type Read = Omit<ReadRequest, 'share'>;

async function readJsonRequest(reading: Reading): Promise<Read> {
  const { ctx, services, endpoint, preferences } = reading;
  const body = await readBody(ctx, { watch: watchOf(reading) });
  if (endpoint.prepare === undefined) {
    throw new ApiError('unsupported_media_type', 'Send the body as multipart/form-data.');
  }
  const isKeyed = preferences.idempotencyKey !== undefined;
  const prepared = isLargeBody(body)
    ? await prepareLarge(ctx, services.largeBodies, endpoint, body)
    : endpoint.prepare(body);
  return { prepared, bodyHash: isKeyed ? sha256(body) : '' };
}

/** Prepares a body in the thread, unless its caller leaves first. */
async function prepareLarge(
  { res, state }: Context,
  largeBodies: LargeBodies,
  { name }: Endpoint,
  body: Buffer,
): Promise<PreparedLargeRequest> {
  const left = new AbortController();
  const leave = (): void => left.abort();
  res.once('close', leave);
  try {
    return await largeBodies.prepare(name, body, state.caller.account, left.signal);
  } finally {
    res.off('close', leave);
  }
}

async function readFormRequest(reading: Reading): Promise<Read> {
  const { ctx, services, endpoint, preferences } = reading;
  const { blobs } = services;
  if (endpoint.prepareForm === undefined) {
    throw new ApiError('unsupported_media_type', 'Send the body as JSON, with Content-Type application/json.');
  }
  const isKeyed = preferences.idempotencyKey !== undefined;
  const { account } = ctx.state.caller;
  const { form, hash } = await readForm(ctx, blobs.of(account), isKeyed, undefined, watchOf(reading));
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
    const named = withModel(services, endpoint, read);
    const prepared = endpoint.resolve === undefined ? named : await resolve(ctx, services, endpoint.resolve, named);
    const checked = await checkByNewestKey(services, endpoint, prepared, ctx.state);
    const ignored = ignoredByAll(checked);
    if (ignored === undefined) ctx.state.ignored = checked.ignored;
    else if (ignored !== '') ctx.set('x-sluice-ignored', ignored);
    const { excludedRoutes, unpriced } = checked;
    return excludedRoutes.length === 0 && unpriced === undefined ? prepared : { ...prepared, excludedRoutes, unpriced };
  } catch (error) {
    await discardUploads(services, ctx.state.caller.account, read.files);
    throw error;
  }
}

/** The request with the model that is meant where it names none. @throws ApiError 400 where the operator has set none. */
function withModel({ config }: Services, { defaultModel }: Endpoint, read: Prepared): Prepared {
  if (defaultModel === undefined || read.model !== '') return read;
  const model = config.defaultModels[defaultModel];
  if (model !== undefined) return { ...read, model };
  const hint = `name one, or have the operator of this gateway set one by SLUICE_DEFAULT_MODELS (${defaultModel}=MODEL)`;
  throw invalidParameter('model', `Missing required parameter: 'model'. There is no default model here: ${hint}.`);
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
