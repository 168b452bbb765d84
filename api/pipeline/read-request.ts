import { ApiError } from '../../shared/errors.ts';
import { idempotencyHash, sha256 } from '../admission/idempotency-hash.ts';
import type { Preferences } from '../admission/preferences.ts';
import { discardUploads } from '../admission/submit.ts';
import type { BodyShare, BodyShares } from '../bounds/body-shares.ts';
import { encodingOf } from '../http/body/body-encoding.ts';
import { isForm, readForm } from '../http/body/form-body.ts';
import { type BodyWatch, readBody } from '../http/body/json-body.ts';
import { ClientConnection } from '../replies/client-connection.ts';
import type { Services } from '../services.ts';
import type { Context } from '../state.ts';
import { checkByNewestKey, ignoredByAll } from './check-request.ts';
import type { Endpoint, Parsed } from './endpoint.ts';
import { invalidParameter } from './invalid-request.ts';
import { isLargeBody, type LargeBodies, type ParsedLargeRequest } from './large-bodies.ts';

/** How long Redis and the database may take to show a key. */
const keyMs = 5000;

/** A request that was read, and the hash of its body where it has an idempotency key. */
export interface ReadRequest {
  readonly parsed: Parsed;
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
    const { parsed, bodyHash } = await read({ ctx, services, endpoint, preferences, share });
    return { parsed: await complete(ctx, services, endpoint, parsed), bodyHash, share };
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
  if (endpoint.parse === undefined) {
    throw new ApiError('unsupported_media_type', 'Send the body as multipart/form-data.');
  }
  const isKeyed = preferences.idempotencyKey !== undefined;
  const parsed = isLargeBody(body) ? await parseLarge(ctx, services.largeBodies, endpoint, body) : endpoint.parse(body);
  return { parsed, bodyHash: isKeyed ? sha256(body) : '' };
}

/** Prepares a body in the thread, unless its caller leaves first. */
async function parseLarge(
  { res, state }: Context,
  largeBodies: LargeBodies,
  { name }: Endpoint,
  body: Buffer,
): Promise<ParsedLargeRequest> {
  const left = new AbortController();
  const leave = (): void => left.abort();
  res.once('close', leave);
  try {
    return await largeBodies.parse(name, body, state.caller.account, left.signal);
  } finally {
    res.off('close', leave);
  }
}

async function readFormRequest(reading: Reading): Promise<Read> {
  const { ctx, services, endpoint, preferences } = reading;
  const { blobs } = services;
  if (endpoint.parseForm === undefined) {
    throw new ApiError('unsupported_media_type', 'Send the body as JSON, with Content-Type application/json.');
  }
  const isKeyed = preferences.idempotencyKey !== undefined;
  const { account } = ctx.state.caller;
  const { form, hash } = await readForm(ctx, blobs.of(account), isKeyed, undefined, watchOf(reading));
  try {
    return { parsed: endpoint.parseForm(form), bodyHash: hash };
  } catch (error) {
    await discardUploads({ blobs }, account, form.files);
    throw error;
  }
}

/** Resolves what a request names, and holds it against its model. What it has uploaded goes when it is refused. */
async function complete(ctx: Context, services: Services, endpoint: Endpoint, read: Parsed): Promise<Parsed> {
  try {
    const named = withModel(services, endpoint, read);
    const parsed = endpoint.resolve === undefined ? named : await resolve(ctx, services, endpoint.resolve, named);
    const checked = await checkByNewestKey(services, endpoint, parsed, ctx.state);
    const ignored = ignoredByAll(checked);
    if (ignored === undefined) ctx.state.ignored = checked.ignored;
    else if (ignored !== '') ctx.set('x-sluice-ignored', ignored);
    const { excludedRoutes, unpriced } = checked;
    return excludedRoutes.length === 0 && unpriced === undefined ? parsed : { ...parsed, excludedRoutes, unpriced };
  } catch (error) {
    await discardUploads(services, ctx.state.caller.account, read.files);
    throw error;
  }
}

/** The request with the model that is meant where it names none. @throws ApiError 400 where the operator has set none. */
function withModel({ config }: Services, { defaultModel }: Endpoint, read: Parsed): Parsed {
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
  read: Parsed,
): Promise<Parsed> {
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
