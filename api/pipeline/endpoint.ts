import type { UnsupportedParameters } from '../../shared/accounts/api-keys.ts';
import type { Capability } from '../../shared/capabilities/capability.ts';
import type { Catalogue, RoutedModel } from '../../shared/catalogue/catalogue.ts';
import type { DefaultModels } from '../../shared/config/ingress-settings.ts';
import type { ApiError } from '../../shared/errors.ts';
import type { BodyShare } from '../bounds/body-shares.ts';
import type { EndpointOperation } from '../reference/operation.ts';
import type { ClientConnection } from '../replies/client-connection.ts';
import type { View } from '../replies/view.ts';
import type { Context } from '../state.ts';
import type { LargeBodies } from './large-bodies/large-bodies.ts';
import type { Parse, ParsedRequest, ParseForm } from './parsed-request.ts';
import type { ResourceDependencies } from './resource.ts';

/** Dependencies of the endpoints' `resolve`. */
export interface ResolveDependencies extends ResourceDependencies {
  readonly catalogue: Catalogue;
  readonly largeBodies: LargeBodies;
  /** The main base URL, without a slash at the end. */
  readonly baseUrl: string;
}

/** What an endpoint's `resolve` gets beside the request. */
export interface ResolveContext {
  readonly services: ResolveDependencies;
  /** Whose jobs may be named. */
  readonly account: string;
  /** Parameters of the route's path. */
  readonly params: Readonly<Record<string, string>>;
  /** Ends every wait when the caller disconnects. */
  readonly connection: ClientConnection;
  /** Counts what is read of other jobs, before it is in memory where its size is known. */
  readonly share: Pick<BodyShare, 'grow'>;
  /**
   * Awaited before any look-up in the account, as admission, which checks the key, comes later.
   * @throws ApiError 401 for a key that was revoked or has expired.
   */
  readonly assertActive: () => Promise<void>;
}

/**
 * An endpoint that makes jobs: wire request → job, frames → wire. Everything else is shared by one handler. Its functions
 * are methods, so that endpoints of different types fit in one list: `defineEndpoint` has checked that they fit each other.
 */
export interface Endpoint<Requirements = unknown, ViewOptions extends object = object> {
  /** Stable name: it is stored with the job to find its view again. */
  readonly name: string;
  readonly path: string;
  readonly capability: Capability;
  /** For `/openapi.json` and `/docs`. */
  readonly operation: EndpointOperation;
  /** Kind of the default model for requests without one. */
  readonly defaultModel?: keyof DefaultModels;
  /** Parses a JSON body; missing if only a form is accepted. */
  readonly parse?: Parse<Requirements, ViewOptions>;
  /** Parses a form; missing if only JSON is accepted. */
  readonly parseForm?: ParseForm<Requirements, ViewOptions>;
  /**
   * Completes a parsed request by data of other jobs: earlier turns, the video to remix.
   * @throws ApiError 400 or 404 for references to missing jobs.
   */
  resolve?(
    request: ParsedRequest<Requirements, ViewOptions>,
    context: ResolveContext,
  ): Promise<ParsedRequest<Requirements, ViewOptions>>;
  /**
   * Validates the request against its model's row. Returns the fields (hints only) that are omitted because the model's
   * vendor does not support them: the header `X-Sluice-Ignored` names them.
   * @throws ApiError 400 that names the parameter at fault.
   */
  check?(
    request: Pick<ParsedRequest<Requirements>, 'stream' | 'requirements'>,
    model: RoutedModel,
    unsupported?: UnsupportedParameters,
  ): readonly string[] | undefined;
  /** The error body of responses without events; OpenAI's by default. */
  readonly errorBody?: (error: ApiError, ctx: Context) => unknown;
  readonly view: View<ViewOptions>;
}

/** Validates requests of an endpoint, see `Endpoint.check`. */
export type Check<Requirements> = (
  ...parameters: Parameters<NonNullable<Endpoint<Requirements>['check']>>
) => readonly string[] | undefined;

/** Completes requests of an endpoint, see `Endpoint.resolve`. */
export type Resolve<Requirements, ViewOptions extends object> = (
  request: ParsedRequest<Requirements, ViewOptions>,
  context: ResolveContext,
) => Promise<ParsedRequest<Requirements, ViewOptions>>;

/** Defines an endpoint whose parser, checks and view agree on the types of requirements and view options. */
export function defineEndpoint<Requirements, ViewOptions extends object>(
  endpoint: Endpoint<Requirements, ViewOptions>,
): Endpoint<Requirements, ViewOptions> {
  return endpoint;
}
