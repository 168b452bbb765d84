import type { Middleware } from 'koa';
import { ApiError } from '../../shared/errors.ts';
import { hasEndpointInBase } from '../pipeline/missing.ts';
import type { State } from '../state.ts';

/**
 * Parts of OpenAI's API that the gateway does not offer, by path prefixes of whole segments. Files, threads and what builds
 * on them are stored by a vendor for its own account; organisation and billing are the operator's. Source:
 * https://platform.openai.com/docs/api-reference (and its legacy and deprecated sections).
 */
const areas: readonly (readonly [name: string, ...prefixes: string[]])[] = [
  ['Fine-tuning', '/v1/fine_tuning', '/v1/fine-tunes'],
  ['File management', '/v1/files', '/v1/uploads'],
  ['Batch processing', '/v1/batches'],
  ['The Assistants API', '/v1/assistants', '/v1/threads'],
  ['Vector store management', '/v1/vector_stores'],
  ['Organization management', '/v1/organization', '/v1/organizations', '/v1/projects'],
  ['Billing management', '/v1/dashboard', '/dashboard', '/v1/billing', '/v1/subscriptions'],
  ['Moderation', '/v1/moderations'],
  ['Checking the provenance of content', '/v1/content_provenance_checks'],
  ['The Realtime API', '/v1/realtime'],
  ['The Evals API', '/v1/evals'],
  ['Container management', '/v1/containers'],
  ['The Conversations API', '/v1/conversations'],
  ['ChatKit', '/v1/chatkit'],
  ['Skill management', '/v1/skills'],
  ['Voice management', '/v1/audio/voices', '/v1/audio/voice_consents'],
  ['Listing and changing stored chat completions', '/v1/chat/completions/*'],
  ['Counting the tokens of a response before it is made', '/v1/responses/input_tokens'],
  ['Compacting responses', '/v1/responses/compact'],
  ['Editing, extending and casting videos', '/v1/videos/edits', '/v1/videos/extensions', '/v1/videos/characters'],
  ['The Message Batches API', '/v1/messages/batches'],
  ['The legacy Engines API', '/v1/engines'],
  ['The legacy Edits API', '/v1/edits'],
];

/** `*` matches one segment, if the path before it is an endpoint. */
const patterns = areas.flatMap(([name, ...prefixes]) =>
  prefixes.map((prefix) => ({ name, pattern: new RegExp(`^${prefix.replace('*', '[^/]+')}(/|$)`, 'i') })),
);

/**
 * Precedes the routes, which would take its last segment for an id (`GET /v1/responses/compact`): a path that is not offered gets a 404
 * that names the area, whatever the method. Like all unknown paths it needs no key, because it protects nothing.
 * @param paths those of the API that have no parameters; one behind another is a mistaken base URL
 */
export function notOffered(paths: readonly string[]): Middleware<State> {
  return (ctx, next) => {
    const area = patterns.find(({ pattern }) => pattern.test(ctx.path));
    if (area === undefined || hasEndpointInBase(ctx.path, paths)) return next();
    ctx.state.endpoint = 'not_offered';
    throw new ApiError('not_found', `${area.name} is not offered by this gateway.`);
  };
}
