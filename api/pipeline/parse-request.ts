import type { Blobs } from '../../shared/blobs/blobs.ts';
import { ApiError } from '../../shared/errors.ts';
import { discardUploads } from '../admission/admit-job.ts';
import type { BodyGate } from '../admission/body-gate.ts';
import { cacheMsOf, idempotencyHash, mayAdopt, type Preferences, retryName, sha256 } from '../admission/preferences.ts';
import type { BodyShare, BodyShares } from '../bounds/body-shares.ts';
import type { DiskFloor } from '../bounds/disk-floor.ts';
import { readForm } from '../http/body/form-body.ts';
import { type BodyWatch, encodingOf, isForm, readBody } from '../http/body/read-body.ts';
import type { Context } from '../state.ts';
import type { Endpoint } from './endpoint.ts';
import { isLargeBody, type LargeBodies, parseAfterYield, smallBody } from './large-bodies/large-bodies.ts';
import type { ParsedRequest } from './parsed-request.ts';
import { mayHaveName } from './request-name.ts';

/** Dependencies of reading and parsing a request. */
export interface ParseRequestDependencies {
  readonly uploads: BodyShares;
  readonly bodies: BodyShares;
  readonly disk: DiskFloor;
  readonly bodyGate: BodyGate;
  readonly largeBodies: LargeBodies;
  readonly blobs: Blobs;
}

/** A parsed request, and the hash of its body if it has an idempotency key. */
export interface ReadRequest {
  readonly parsed: ParsedRequest;
  readonly bodyHash: string;
  /** As of `retryName`. */
  readonly retryName?: string | undefined;
  /** Its share of memory until it is queued, if that is counted. The receiver closes it. */
  readonly share?: BodyShare | undefined;
}

/** A request that is being read. */
interface Reading {
  readonly ctx: Context;
  readonly services: ParseRequestDependencies;
  readonly endpoint: Endpoint;
  readonly preferences: Preferences;
  readonly share: BodyShare | undefined;
}

/**
 * Reads and parses a request's body. A refused request releases its share.
 * @throws ApiError 400, 413, 415; for a large one also those of admission; 429 for too many at a time.
 */
export async function parseRequest(
  ctx: Context,
  services: ParseRequestDependencies,
  endpoint: Endpoint,
  preferences: Preferences,
): Promise<ReadRequest> {
  const [shares, read] = isForm(ctx)
    ? ([services.uploads, readFormRequest] as const)
    : ([services.bodies, readJsonRequest] as const);
  const share = openShare(ctx, shares);
  try {
    return { ...(await read({ ctx, services, endpoint, preferences, share })), share };
  } catch (error) {
    share?.close();
    throw error;
  }
}

/** A body that has arrived already is not counted, unless it is compressed. */
function openShare({ req, state }: Context, shares: BodyShares): BodyShare | undefined {
  return req.complete && encodingOf(req) === undefined ? undefined : shares.open(state.caller);
}

function watchOf(reading: Reading): BodyWatch | undefined {
  const { ctx, services, endpoint, preferences, share } = reading;
  if (share === undefined) return undefined;
  return {
    beforeLarge: async () => {
      await services.disk.assertRoomToBegin();
      const free = {
        idempotency: idempotencyHash(ctx, endpoint, preferences),
        mayHaveAnswer: mayHaveAnswer(reading),
        isQuote: preferences.quote,
      };
      ctx.state.caller = await services.bodyGate.assertMayBegin(ctx.state.caller, free);
    },
    grow: (bytes) => {
      share.grow(bytes);
      if (isForm(ctx)) services.disk.assertRoom();
    },
  };
}

/**
 * Whether a request may get the answer of another one, for nothing: a cached one, that of an identical request that runs, or that of an
 * earlier try.
 */
function mayHaveAnswer({ ctx, endpoint, preferences }: Reading): boolean {
  const { caller } = ctx.state;
  const bytes = sizeOf(ctx);
  const isNamed = cacheMsOf(preferences, caller) > 0 || (preferences.singleFlight ?? caller.singleFlight) === true;
  if (isNamed && mayHaveName(endpoint, bytes)) return true;
  return !isForm(ctx) && mayAdopt(preferences, caller, bytes);
}

/** The size of a body before it is read, in bytes; undefined if it is not known. */
function sizeOf({ req }: Context): number | undefined {
  const length = req.headers['content-length'];
  return length === undefined || encodingOf(req) !== undefined ? undefined : Number(length);
}

type Read = Omit<ReadRequest, 'share'>;

async function readJsonRequest(reading: Reading): Promise<Read> {
  const { ctx, services, endpoint, preferences } = reading;
  const body = await readBody(ctx, { watch: watchOf(reading) });
  if (endpoint.parse === undefined) {
    throw new ApiError('unsupported_media_type', 'Send the body as multipart/form-data.');
  }
  const bodyHash = preferences.idempotencyKey === undefined ? '' : sha256(body);
  const name = preferences.retries === undefined ? undefined : retryName(ctx, preferences, body);
  const { parse } = endpoint;
  // Most bodies are small, and then nothing is awaited.
  if (body.byteLength <= smallBody) return { parsed: parse(body), bodyHash, retryName: name };
  const parsing = isLargeBody(body)
    ? parseLarge(ctx, services.largeBodies, endpoint, body)
    : parseAfterYield(parse, body);
  return { parsed: await parsing, bodyHash, retryName: name };
}

/** Parses a body in the thread, unless its caller disconnects first. */
async function parseLarge(
  { res, state }: Context,
  largeBodies: LargeBodies,
  { name }: Endpoint,
  body: Buffer,
): Promise<ParsedRequest> {
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
