import type { CallerDirectory } from '../auth/authenticate.ts';
import type { Handover } from '../replies/client-connection.ts';
import { ClientConnection } from '../replies/client-connection.ts';
import type { Context } from '../state.ts';
import { checkByNewestKey, ignoredByAll } from './check-request.ts';
import type { Endpoint, ResolveDependencies } from './endpoint.ts';
import { invalidParameter } from './invalid-request.ts';
import type { ParsedRequest } from './parsed-request.ts';

/** Dependencies of a request's validation. */
export interface ValidateRequestDependencies extends ResolveDependencies {
  readonly callers: CallerDirectory;
  readonly handover: Handover;
}

/** How long Redis and the database may take to show a key. */
const keyMs = 5000;

/**
 * Resolves a parsed request's references (its model, other jobs), and validates it against its model and the caller's key.
 * The header `X-Sluice-Ignored` names ignored fields.
 * @throws ApiError 400, 401, 403, 404.
 */
export async function validateRequest(
  ctx: Context,
  services: ValidateRequestDependencies,
  endpoint: Endpoint,
  read: ParsedRequest,
): Promise<ParsedRequest> {
  const named = withModel(services, endpoint, read);
  const parsed = endpoint.resolve === undefined ? named : await resolve(ctx, services, endpoint.resolve, named);
  const checked = await checkByNewestKey(services, endpoint, parsed, ctx.state);
  const ignored = ignoredByAll(checked);
  if (ignored === undefined) ctx.state.ignored = checked.ignored;
  else if (ignored !== '') ctx.set('x-sluice-ignored', ignored);
  const { excludedRoutes, unpriced } = checked;
  return excludedRoutes.length === 0 && unpriced === undefined ? parsed : { ...parsed, excludedRoutes, unpriced };
}

/** The request with the model that is meant where it names none. @throws ApiError 400 where the operator has set none. */
function withModel(
  { config }: ValidateRequestDependencies,
  { defaultModel }: Endpoint,
  read: ParsedRequest,
): ParsedRequest {
  if (defaultModel === undefined || read.model !== '') return read;
  const model = config.defaultModels[defaultModel];
  if (model !== undefined) return { ...read, model };
  const hint = `name one, or have the operator of this gateway set one by SLUICE_DEFAULT_MODELS (${defaultModel}=MODEL)`;
  throw invalidParameter('model', `Missing required parameter: 'model'. There is no default model here: ${hint}.`);
}

async function resolve(
  ctx: Context,
  services: ValidateRequestDependencies,
  resolveRequest: NonNullable<Endpoint['resolve']>,
  read: ParsedRequest,
): Promise<ParsedRequest> {
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
