/** What lies directly under `/v1`: each route's first segment. */
export const resources = [
  ...['audio', 'chat', 'completions', 'embeddings', 'images', 'jobs', 'key', 'messages', 'models', 'responses'],
  ...['usage', 'videos'],
] as const;

/** A path of the API under a base URL that is a slip: of other gateways, with `/v1` twice, or without it. */
const slipped = new RegExp(
  `^/(?:(?:(?:openai|api)/)?(?:v1/)+)?(${resources.join('|')})(?=/|$)`,
  // Routes are found in any case; what is decided by the path is decided by lower case.
  'i',
);
const usual = new RegExp(`^/v1/(?:${resources.join('|')})(?=[/?]|$)(?!.*//)`);

/**
 * The target of a request as the gateway knows it: a path of the API that is written under a slip of its base URL
 * (`//v1/…`, `/v1/v1/…`, `/openai/v1/…`, `/api/v1/…`, without `/v1`) is the path that is meant. All that this makes are paths
 * under `/v1/`, with the guards that these have; every other target stays as it is.
 */
export function gatewayPath(target: string): string {
  // What nearly every client sends.
  if (usual.test(target)) return target;
  if (!target.startsWith('/')) return target;
  const end = target.search(/[?#]|$/);
  const path = target.slice(0, end).replace(/\/{2,}/g, '/');
  const match = slipped.exec(path);
  if (match === null) return target;
  const [prefix, resource = ''] = match;
  return `/v1/${resource.toLowerCase()}${path.slice(prefix.length)}${target.slice(end)}`;
}
