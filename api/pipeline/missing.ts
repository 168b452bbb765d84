import type { Capability } from '../../shared/capabilities/capability.ts';
import type { Catalogue } from '../../shared/catalogue/catalogue.ts';
import type { Model } from '../../shared/catalogue/models.ts';
import { editDistance } from '../../shared/config/edit-distance.ts';
import { ApiError } from '../../shared/errors.ts';
import { type Caller, isInScope } from '../auth/caller.ts';

/** Maximum length of an id in an error, as it is the caller's text. */
const maxId = 200;

/** Shortens an id for an error. */
export function shownId(id: string): string {
  return id.length <= maxId ? id : `${id.slice(0, maxId)}…`;
}

/** The 405 for a known path. @param allowed its methods, in the format of `Allow` */
export function methodNotAllowed(method: string, allowed: string): ApiError {
  const hint = allowed === '' ? '' : ` Allowed: ${allowed}.`;
  return new ApiError('method_not_allowed', `The method ${method} is not allowed on this path.${hint}`);
}

/**
 * The 404 for an unknown path: names the nearest path, and the base URL where the caller's is probably wrong.
 * @param baseUrl that of the API
 * @param paths those of the API that have no parameters
 */
export function unknownPath(method: string, path: string, baseUrl: string, paths: readonly string[]): ApiError {
  const isOurs = /^\/(v1|console|admin)(\/|$)/.test(path) && !hasEndpointInBase(path, paths);
  const near = nearestPaths(path, paths).join(' or ');
  const hint = isOurs ? near && `. Did you mean ${near}?` : `. The base URL of the API is ${baseUrl}`;
  return new ApiError('not_found', `Unknown path: ${method} ${shownId(path)}${hint}`);
}

/** Whether a client appended a path of the API to one: its base URL ends with an endpoint's path. */
export function hasEndpointInBase(path: string, paths: readonly string[]): boolean {
  const lower = path.toLowerCase();
  return paths.some((first) => {
    if (!lower.startsWith(`${first}/`)) return false;
    const appended = lower.slice(first.length);
    // With an id between, as in /v1/chat/completions/{id}/messages, it is a path of its own.
    return paths.some((next) => appended === next || appended === next.slice(version.length));
  });
}

const version = '/v1';
/** Longer paths are not compared. */
const comparedPath = 64;

/** Up to three paths: those below an incomplete one, else the nearest. */
function nearestPaths(path: string, paths: readonly string[]): string[] {
  // First of all: a path of 16 KB of slashes would be searched for its end from each of them.
  if (path.length > comparedPath) return [];
  const asked = path.toLowerCase().replace(/\/+$/, '');
  if (asked.length <= version.length) return [];
  const below = paths.filter((known) => known.startsWith(`${asked}/`));
  if (below.length > 0) return below.slice(0, 3);
  const maxDistance = Math.min(3, Math.ceil((asked.length - version.length - 1) / 4));
  const [nearest] = paths
    .map((known) => ({ known, distance: editDistance(asked, known, maxDistance) }))
    .filter(({ distance }) => distance <= maxDistance)
    .sort((a, b) => a.distance - b.distance);
  return nearest === undefined ? [] : [nearest.known];
}

/** The 404 for an unavailable model, worded like OpenAI's. @param hint appended to it */
function modelNotFound(id: string, hint = ''): ApiError {
  const message = `The model \`${shownId(id)}\` does not exist or you do not have access to it.${hint}`;
  return new ApiError('model_not_found', message, { param: 'model' });
}

/** The 404 for a model that its vendor has shut down: names what the vendor recommends instead, if the caller may use that. */
function shutDown(
  catalogue: Pick<Catalogue, 'find'>,
  { id, routes, deprecatedAt, replacement = '' }: Model,
  scopes: Pick<Caller, 'capabilities' | 'models'>,
): ApiError {
  const other = catalogue.find(replacement);
  const hint = other !== undefined && isInScope(scopes, other) ? ` Use \`${other.id}\` instead.` : '';
  const day = deprecatedAt === undefined ? '' : ` on ${new Date(deprecatedAt * 1000).toISOString().slice(0, 10)}`;
  const vendor = routes[0]?.vendor ?? 'unknown';
  const message = `The model \`${shownId(id)}\` was shut down by its vendor (${vendor})${day}.${hint}`;
  return new ApiError('model_not_found', message, { param: 'model' });
}

/** Maximum number of alternatives to a model whose vendor is off. */
const maxNamed = 5;

/**
 * The 404 for a model that is not served here: suggests names for a misspelled one, and explains that the vendor of a known
 * one is off, or has shut it down. Models outside of the key's scope are not named.
 * @param wanted the requested capability; defaults to the model's own
 */
export function missingModel(
  catalogue: Pick<Catalogue, 'find' | 'list' | 'nearest' | 'retired' | 'sources'>,
  id: string,
  scopes: Pick<Caller, 'capabilities' | 'models'>,
  wanted?: Capability,
): ApiError {
  const near = catalogue.nearest(id).filter((name) => isInScope(scopes, catalogue.find(name)));
  const retired = catalogue.retired(id);
  if (retired !== undefined) return shutDown(catalogue, retired, scopes);
  const known = catalogue.sources().models.find((model) => model.id === id);
  if (known === undefined) return modelNotFound(id, near.length === 0 ? '' : ` Did you mean ${near.join(' or ')}?`);
  const capability = wanted ?? known.capability;
  const vendors = [...new Set(known.routes.map(({ vendor }) => vendor))];
  // A model with legacy completions only is none for chats; all others serve legacy completions, too.
  const suits = ({ legacyCompletions }: Model) => legacyCompletions !== true || known.legacyCompletions === true;
  const usable = catalogue
    .list()
    .filter((model) => model.capability === capability && isInScope(scopes, model) && suits(model));
  const ids = new Set(usable.map((model) => model.id));
  const named = [...new Set([...near.filter((name) => ids.has(name)), ...ids])].slice(0, maxNamed);
  const [subject, are] = vendors.length === 1 ? ['its vendor', 'is'] : ['its vendors', 'are'];
  const message =
    `The model \`${shownId(id)}\` is known, but ${subject} (${vendors.slice(0, maxNamed).join(', ')}) ${are} off on this gateway.` +
    (named.length === 0
      ? ''
      : ` Available ${capability} models: ${named.join(', ')}${ids.size > named.length ? ', …' : ''}.`);
  return new ApiError('model_not_found', message, { param: 'model' });
}
