/** First segments of the routes under `/v1`. */
export const resources = [
  ...['audio', 'chat', 'completions', 'embeddings', 'images', 'jobs', 'key', 'messages', 'models', 'responses'],
  ...['usage', 'videos'],
] as const;

/** A mistyped path of the API under a base URL: that of another gateway, with `/v1` twice, or without it. */
const slipped = new RegExp(
  `^/(?:(?:(?:openai|api)/)?(?:v1/)+)?(${resources.join('|')})(?=/|$)`,
  // Routes match in any case, while decisions by path compare lower case.
  'i',
);
const usual = new RegExp(`^/v1/(?:${resources.join('|')})(?=[/?]|$)(?!.*//)`);

/**
 * Corrects the target of a request: a path of the API under a mistyped base URL (`//v1/…`, `/v1/v1/…`, `/openai/v1/…`,
 * `/api/v1/…`, without `/v1`) becomes the intended path. It only produces paths under `/v1/`, with their guards; other
 * targets stay as they are.
 */
export function gatewayPath(target: string): string {
  // A fast path for nearly every client.
  if (usual.test(target)) return target;
  if (!target.startsWith('/')) return target;
  const end = target.search(/[?#]|$/);
  const path = target.slice(0, end).replace(/\/{2,}/g, '/');
  const match = slipped.exec(path);
  if (match === null) return target;
  const [prefix, resource = ''] = match;
  return `/v1/${resource.toLowerCase()}${path.slice(prefix.length)}${target.slice(end)}`;
}
