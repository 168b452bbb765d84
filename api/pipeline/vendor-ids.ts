import type { KeySettings } from '../../shared/accounts/api-keys.ts';
import { ApiError } from '../../shared/errors.ts';

/** A reference of a request to something in the operator's own account at a vendor, and its path. */
export interface VendorId {
  /** `tools[0].vector_store_ids[1]`. */
  readonly param: string;
  readonly id: string;
}

/** Fields with an id, or a list of ids, at any depth. Some vendors accept both spellings. */
const idFields = [
  ...['agent_id', 'assistant_id', 'batch_id', 'cached_content', 'character_id', 'connector_id', 'container_id'],
  ...['conversation_id', 'dataset_id', 'element_id', 'file_id', 'generation_id', 'guardrail_identifier', 'image_id'],
  ...['knowledge_base_id', 'prompt_id', 'skill_id', 'task_id', 'thread_id', 'vector_store_id', 'video_id', 'voice_id'],
].flatMap((name) => [name, `${name}s`, camelCase(name), `${camelCase(name)}s`]);

/**
 * Relevant fields by name: `id` contains an id or a list of them, `named` an id or an object with one in `id`, `described`
 * such an object (a text is something else), `own` what no vendor resolves: JSON schemas, tags, earlier citations or
 * results. One look-up per field: a long conversation has thousands.
 */
const fields: ReadonlyMap<string, 'id' | 'named' | 'described' | 'own' | 'parameters' | 'cache'> = new Map([
  ...idFields.map((name) => [name, 'id'] as const),
  ...['container', 'conversation'].map((name) => [name, 'named'] as const),
  ...['audio', 'character', 'prompt', 'skill', 'voice', 'frame0', 'frame1'].map((name) => [name, 'described'] as const),
  ...['annotations', 'client_metadata', 'input_schema', 'metadata', 'results', 'schema'].map(
    (name) => [name, 'own'] as const,
  ),
  ['parameters', 'parameters'],
  ['cache_control', 'cache'],
]);

function camelCase(name: string): string {
  return name.replace(/_(\w)/g, (_match, letter: string) => letter.toUpperCase());
}

/** Fields anywhere in a request that concern the operator's own accounts at vendors. */
export interface VendorFields {
  /** Ids in those accounts, which all tenants share: files, vector stores, containers, connectors, voices and the like. */
  readonly vendorIds: VendorId[];
  /** Path of a request for a longer cache than usual, which costs more. */
  longCache: string | undefined;
}

/** Reads names and objects only, not texts. @param request parsed */
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
    // Forms name nested fields by brackets: `tools[0][file_ids][]`.
    const isBracketed = key.charCodeAt(key.length - 1) === closingBracket;
    const kind = fields.get(isBracketed ? lastName(key) : key);
    if (kind !== undefined && item != null) note(key, item, path, found);
    if (typeof item !== 'object' || item === null || kind === 'own') continue;
    // The JSON schema of a function.
    if (kind === 'parameters' && typeof (value as { readonly name?: unknown }).name === 'string') continue;
    within(item, key, path, found);
  }
}

const closingBracket = 0x5d;

function lastName(key: string): string {
  return /\[([^[\]]+)\](?:\[\])?$/.exec(key)?.[1] ?? key;
}

function within(item: object, step: string | number, path: Path, found: VendorFields): void {
  path.push(step);
  walk(item, path, found);
  path.pop();
}

/** Notes the ids of a relevant field. */
function note(key: string, value: unknown, path: Path, found: VendorFields): void {
  const kind = fields.get(key) ?? fields.get(lastName(key));
  const add = (id: unknown, ...more: Path): void => {
    if ((typeof id === 'string' && id !== '') || typeof id === 'number') {
      found.vendorIds.push({ param: paramOf([...path, key, ...more]), id: String(id) });
    }
  };
  if (kind === 'id' || kind === 'named') {
    add(value);
    if (Array.isArray(value)) for (const [index, id] of value.entries()) add(id, index);
  }
  if (kind === 'named' || kind === 'described') add((value as { readonly id?: unknown }).id, 'id');
  if (kind === 'cache') {
    const { ttl } = value as { readonly ttl?: unknown };
    if (ttl != null && ttl !== '5m') found.longCache ??= paramOf([...path, key, 'ttl']);
  }
}

function paramOf(path: Path): string {
  return path.map((step, index) => (typeof step === 'number' ? `[${step}]` : index === 0 ? step : `.${step}`)).join('');
}

/** @throws ApiError 403 that names the first id that the key may not use. */
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
