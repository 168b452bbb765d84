import type { KeySettings } from '../../shared/api-keys.ts';
import { ApiError } from '../../shared/errors.ts';

/** Something in the operator's own account at a vendor that a request names, and where. */
export interface VendorId {
  /** `tools[0].vector_store_ids[1]`. */
  readonly param: string;
  readonly id: string;
}

/** Fields that hold an id, or a list of them, wherever they stand. Some vendors read their names in either spelling. */
const idFields = new Set(
  [
    ...['agent_id', 'assistant_id', 'batch_id', 'cached_content', 'character_id', 'connector_id', 'container_id'],
    ...['conversation_id', 'dataset_id', 'element_id', 'file_id', 'generation_id', 'guardrail_identifier', 'image_id'],
    ...[
      'knowledge_base_id',
      'prompt_id',
      'skill_id',
      'task_id',
      'thread_id',
      'vector_store_id',
      'video_id',
      'voice_id',
    ],
  ].flatMap((name) => [name, `${name}s`, camelCase(name), `${camelCase(name)}s`]),
);
/** Fields that are an id, or an object with one in `id` (or the name in `container: {id}`). */
const namedFields = new Set(['container', 'conversation']);
/** Fields whose object names something by its `id`; as a text each is something else. */
const describedFields = new Set(['audio', 'character', 'prompt', 'skill', 'voice', 'frame0', 'frame1']);
/** Objects in which a vendor opens nothing: JSON schemas, tags, and what an answer cited or found before. */
const ownFields = new Set(['annotations', 'client_metadata', 'input_schema', 'metadata', 'results', 'schema']);

function camelCase(name: string): string {
  return name.replace(/_(\w)/g, (_match, letter: string) => letter.toUpperCase());
}

/** What stands anywhere in a request and concerns the operator's own accounts at vendors. */
export interface VendorFields {
  /** All that it names there, which every tenant shares: files, vector stores, containers, connectors, voices and the like. */
  readonly vendorIds: VendorId[];
  /** Where it asks for a cache that lasts longer than usual, which costs more. */
  longCache: string | undefined;
}

/** Looks at names and objects only, not into texts. @param request parsed */
export function readVendorFields(request: object): VendorFields {
  const found: VendorFields = { vendorIds: [], longCache: undefined };
  walk(request, [], found);
  return found;
}

type Path = (string | number)[];

function walk(value: object, path: Path, found: VendorFields): void {
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) {
      const item: unknown = value[index];
      if (typeof item === 'object' && item !== null) within(item, index, path, found);
    }
    return;
  }
  for (const key in value) {
    const item = (value as Record<string, unknown>)[key];
    if (item === null || item === undefined || item === '') continue;
    note(key, item, path, found);
    if (typeof item === 'object' && !ownFields.has(key) && !isParameters(key, value)) within(item, key, path, found);
  }
}

function within(item: object, step: string | number, path: Path, found: VendorFields): void {
  path.push(step);
  walk(item, path, found);
  path.pop();
}

/** The JSON schema of a function. */
function isParameters(key: string, { name }: { readonly name?: unknown }): boolean {
  return key === 'parameters' && typeof name === 'string';
}

function note(key: string, value: unknown, path: Path, found: VendorFields): void {
  // A form names a field inside of another by brackets: `tools[0][file_ids][]`.
  const name = key.endsWith(']') ? (/\[([^[\]]+)\](?:\[\])?$/.exec(key)?.[1] ?? key) : key;
  const add = (id: unknown, ...more: Path): void => {
    if ((typeof id === 'string' && id !== '') || typeof id === 'number') {
      found.vendorIds.push({ param: paramOf([...path, key, ...more]), id: String(id) });
    }
  };
  if (idFields.has(name) || namedFields.has(name)) {
    add(value);
    if (Array.isArray(value)) for (const [index, id] of value.entries()) add(id, index);
  }
  if (key === 'cache_control') {
    const { ttl } = value as { readonly ttl?: unknown };
    if (ttl != null && ttl !== '5m') found.longCache ??= paramOf([...path, key, 'ttl']);
  }
  if (typeof value === 'object' && (namedFields.has(name) || describedFields.has(name))) {
    add((value as { readonly id?: unknown }).id, 'id');
  }
}

function paramOf(path: Path): string {
  return path.map((step, index) => (typeof step === 'number' ? `[${step}]` : index === 0 ? step : `.${step}`)).join('');
}

/** @throws ApiError 403 that names the first id which the key may not name. */
export function assertVendorIds(
  { vendorIds: allowed = [] }: Partial<Pick<KeySettings, 'vendorIds'>>,
  named: readonly VendorId[] | undefined,
): void {
  const refused = named?.find(({ id }) => !allowed.some((each) => isMeant(each, id)));
  if (refused === undefined) return;
  const { param } = refused;
  throw new ApiError(
    'permission_denied',
    `'${param}' names something in the service's own account at a vendor, which this API key may not use. An operator can add its id to the key's vendor_ids.`,
    { param },
  );
}

function isMeant(allowed: string, id: string): boolean {
  return allowed.endsWith('*') ? id.startsWith(allowed.slice(0, -1)) : allowed === id;
}
