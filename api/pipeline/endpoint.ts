import type { UnsupportedParameters } from '../../shared/accounts/api-keys.ts';
import type { Capability } from '../../shared/capabilities/capability.ts';
import type { Catalogue, RoutedModel } from '../../shared/catalogue/catalogue.ts';
import type { DefaultModels } from '../../shared/config/ingress-settings.ts';
import type { ApiError } from '../../shared/errors.ts';
import type { ClientConnection } from '../replies/client-connection.ts';
import type { View } from '../replies/view.ts';
import type { Context } from '../state.ts';
import type { ParsedLargeRequest } from './large-bodies/large-bodies.ts';
import type { Parse, ParsedRequest, ParseForm } from './parsed-request.ts';
import type { ResourceDependencies } from './resource.ts';

/** Dependencies of the endpoints' `resolve`. */
export interface ResolveDependencies extends ResourceDependencies {
  readonly catalogue: Catalogue;
  /** The main base URL, without a slash at the end. */
  readonly baseUrl: string;
}

/** A parsed request; a large one's text is bytes. */
export type Parsed<Requirements = unknown, ViewOptions extends object = object> =
  | ParsedRequest<Requirements, ViewOptions>
  | ParsedLargeRequest<Requirements, ViewOptions>;

/** What `resolve` may use. */
export interface ResolveContext {
  readonly services: ResolveDependencies;
  /** Whose jobs may be named. */
  readonly account: string;
  /** What the route's path names. */
  readonly params: Readonly<Record<string, string>>;
  /** Ends every wait when the caller leaves. */
  readonly connection: ClientConnection;
  /**
   * To be awaited before anything of the account is looked up: admission, where keys are asked after, comes later.
   * @throws ApiError 401 for a key that was revoked or has expired.
   */
  readonly assertActive: () => Promise<void>;
}

/**
 * An endpoint that makes jobs: wire request → job, frames → wire. Everything else is the one handler's. Its functions are
 * methods, so that those of every endpoint can stand in one list: `defineEndpoint` has seen that they fit each other.
 */
export interface Endpoint<Requirements = unknown, ViewOptions extends object = object> {
  /** Stable name: it is stored with the job and finds its view again. */
  readonly name: string;
  readonly path: string;
  readonly capability: Capability;
  /** A request may name no model: its capability's default is meant then. */
  readonly defaultModel?: keyof DefaultModels;
  /** Reads a JSON body; left out where only a form is taken. */
  readonly parse?: Parse<Requirements, ViewOptions>;
  /** Reads a form; left out where only JSON is taken. */
  readonly parseForm?: ParseForm<Requirements, ViewOptions>;
  /**
   * Completes a parsed request by what is known of other jobs: the turns before this one, the video to be remixed.
   * @throws ApiError 400 or 404 for what it names and is not there.
   */
  resolve?(
    request: Parsed<Requirements, ViewOptions>,
    context: ResolveContext,
  ): Promise<Parsed<Requirements, ViewOptions>>;
  /**
   * Validates the request against its model's row. Returns which of its fields the model's vendor would not know and which
   * are left out therefore (hints only): the header `X-Sluice-Ignored` names them.
   * @throws ApiError 400 that names the parameter at fault.
   */
  check?(
    request: Pick<ParsedRequest<Requirements>, 'stream' | 'requirements'>,
    model: RoutedModel,
    unsupported?: UnsupportedParameters,
  ): readonly string[] | undefined;
  /** The error body of answers without events; left out: OpenAI's. */
  readonly errorBody?: (error: ApiError, ctx: Context) => unknown;
  readonly view: View<ViewOptions>;
}

/** How an endpoint validates requests, see `Endpoint.check`. */
export type Check<Requirements> = (
  ...parameters: Parameters<NonNullable<Endpoint<Requirements>['check']>>
) => readonly string[] | undefined;

/** How an endpoint completes requests, see `Endpoint.resolve`. */
export type Resolve<Requirements, ViewOptions extends object> = (
  request: Parsed<Requirements, ViewOptions>,
  context: ResolveContext,
) => Promise<Parsed<Requirements, ViewOptions>>;

/** An endpoint whose parser, checks and view agree about what a request requires, and what its view is told. */
export function defineEndpoint<Requirements, ViewOptions extends object>(
  endpoint: Endpoint<Requirements, ViewOptions>,
): Endpoint<Requirements, ViewOptions> {
  return endpoint;
}
