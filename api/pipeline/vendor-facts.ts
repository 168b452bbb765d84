import type { KeySettings } from '../../shared/accounts/api-keys.ts';
import type { RequestItem } from '../../shared/capabilities/response-items.ts';
import type { ResponseRequest } from '../../shared/capabilities/response-request.ts';
import { chosenTools, namedModels } from '../../shared/capabilities/response-tools.ts';
import { ApiError, maxParam } from '../../shared/errors.ts';
import { isStandardTier } from '../../shared/money/service-tier.ts';

/** A reference of a request to something in the operator's own account at a vendor, and its path. */
export interface VendorId {
  /** `tools[0].vector_store_ids[1]`. */
  readonly param: string;
  readonly id: string;
}

/** Fields with an id, or a list of ids, at any depth. Some vendors accept both spellings. */
const idFields = [
  ...['agent_id', 'assistant_id', 'batch_id', 'cached_content', 'character_id', 'connector_id', 'container_id'],
  ...['conversation_id', 'dataset_id', 'element_id', 'file_id', 'finetune_id', 'generation_id', 'guardrail_identifier'],
  ...['image_id', 'knowledge_base_id', 'prompt_id', 'pronunciation_dictionary_id', 'skill_id', 'style_id', 'task_id'],
  ...['thread_id', 'user_profile_id', 'vector_store_id'],
  ...['video_id', 'voice_id', 'workspace_id'],
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
interface VendorFields {
  /** Ids in those accounts, which all tenants share: files, vector stores, containers, connectors, voices and the like. */
  readonly vendorIds: VendorId[];
  /** Path of a request for a longer cache than usual, which costs more. */
  longCache: string | undefined;
  /** Whether any `cache_control` is set. */
  marksCache: boolean;
}

/** Reads names and objects only, not texts. @param request parsed */
function readVendorFields(request: object): VendorFields {
  const found: VendorFields = { vendorIds: [], longCache: undefined, marksCache: false };
  walk(request, [], found);
  return found;
}

/** Maximum length of a list of what a request names. The event loop takes a millisecond to read a thousand from a thread. */
const maxNamed = 10_000;

/** @param what the list's entries, for the caller @throws ApiError 400 for a list that is too long. */
export function assertFew({ length }: readonly unknown[], what: string, param: string): void {
  if (length <= maxNamed) return;
  throw new ApiError('invalid_request_error', `Too many ${what}: at most ${maxNamed} are accepted.`, { param });
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
      const param = paramOf([...path, key, ...more]);
      found.vendorIds.push({ param, id: String(id) });
      assertFew(found.vendorIds, 'ids of files and the like', param);
    }
  };
  if (kind === 'id' || kind === 'named') {
    add(value);
    if (Array.isArray(value)) for (const [index, id] of value.entries()) add(id, index);
  }
  if (kind === 'named' || kind === 'described') add((value as { readonly id?: unknown }).id, 'id');
  if (kind === 'cache') {
    found.marksCache = true;
    const { ttl } = value as { readonly ttl?: unknown };
    if (ttl != null && ttl !== '5m') found.longCache ??= paramOf([...path, key, 'ttl']);
  }
}

/** As much of a path as errors show: ten thousand ids may lie below a key of megabytes. */
function paramOf(path: Path): string {
  return path.reduce<string>((text, step) => {
    if (text.length > maxParam) return text;
    return typeof step === 'number' ? `${text}[${step}]` : `${text}${text && '.'}${step.slice(0, maxParam + 1)}`;
  }, '');
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

/**
 * A requested feature that no price of the model covers: its vendor may bill it separately, or at other prices. Everything
 * not known to be free counts as one.
 */
export interface BilledExtra {
  /** The caller's parameter. */
  readonly param: string;
  /** Its name for operators: a field, `service_tier.priority`, the type of a tool. */
  readonly name: string;
  /**
   * The kind of price that covers it, if the model has one: `search`, by search context; `hd`, of images; `tier`, of its name;
   * `hour_cache`, of input.
   */
  readonly coveredBy?: 'search' | 'hd' | 'tier' | 'hour_cache';
  /** Further models that it names; see `namedModels`. */
  readonly models?: readonly string[];
}

/** Start of the names of service tiers. */
export const tierPrefix = 'service_tier.';

/** A request's fields. */
export type Fields = Readonly<Record<string, unknown>>;

/** Facts on the operator's accounts at vendors; see `ParsedRequest`. */
export interface VendorFacts {
  readonly extras?: readonly BilledExtra[];
  readonly vendorIds?: readonly VendorId[];
  readonly marksCache?: true;
  readonly wantsHourCache?: true;
}

/** Facts on the operator's accounts at vendors: extras that may be billed, referenced ids, and breakpoints of their caches. */
export function vendorFacts(request: object, extras: readonly BilledExtra[]): VendorFacts {
  const { vendorIds, longCache, marksCache } = readVendorFields(request);
  const ofHour = { param: longCache ?? '', name: 'cache_control', coveredBy: 'hour_cache' } as const;
  const all = longCache === undefined ? extras : [...extras, ofHour];
  return {
    ...(longCache !== undefined && { wantsHourCache: true }),
    ...(all.length > 0 && { extras: all }),
    ...(vendorIds.length > 0 && { vendorIds }),
    ...(marksCache && { marksCache }),
  };
}

/** Chat fields of OpenAI and other vendors that cost only tokens. */
const freeChatFields = new Set([
  ...['model', 'messages', 'stream', 'stream_options', 'temperature', 'top_p', 'presence_penalty', 'frequency_penalty'],
  ...['n', 'stop', 'seed', 'logit_bias', 'max_tokens', 'max_completion_tokens', 'logprobs', 'top_logprobs', 'tools'],
  ...['tool_choice', 'parallel_tool_calls', 'functions', 'function_call', 'response_format', 'reasoning_effort'],
  ...['verbosity', 'prompt_cache_key', 'prompt_cache_retention', 'prompt_cache_options', 'moderation', 'store', 'user'],
  ...['safety_identifier', 'metadata', 'thinking', 'output_config'],
  ...['cache_control', 'top_k', 'min_p', 'top_a', 'typical_p', 'repetition_penalty', 'length_penalty', 'min_tokens'],
  ...['ignore_eos', 'stop_token_ids', 'bad_words', 'random_seed', 'safe_prompt', 'prompt_mode', 'reasoning'],
  ...['include_reasoning', 'reasoning_format', 'reasoning_split', 'enable_thinking', 'thinking_budget'],
  ...['chat_template_kwargs', 'structured_outputs', 'guided_json', 'guided_regex', 'guided_choice', 'guided_grammar'],
]);
/** Further ones of legacy completions. */
const freeCompletionFields = new Set(['prompt', 'suffix', 'echo', 'best_of']);
/** Further ones of responses; `include` and `truncation` only select what is shown or omitted. */
const freeResponseFields = new Set([
  ...[
    'input',
    'instructions',
    'include',
    'text',
    'max_output_tokens',
    'truncation',
    'max_tool_calls',
    'client_metadata',
  ],
  ...['previous_response_id', 'background'],
]);
/** Tools that the caller runs itself, or that only select among others. */
const freeTools = new Set([
  ...['function', 'custom', 'namespace', 'allowed_tools', 'local_shell', 'apply_patch', 'tool_search', 'computer'],
  'computer_use_preview',
]);

/**
 * The extras of a chat, or of a request that becomes one.
 * @param given names of the fields with a value (see `givenChatFields`)
 */
export function chatExtras(given: readonly string[], fields: Fields): BilledExtra[] {
  const extras = given.map(rootOf).filter((name) => !freeChatFields.has(name));
  return extras.flatMap((name) => extrasOf(name, fields));
}

/** The extras of a legacy completion. @param given as of `chatExtras` */
export function completionExtras(given: readonly string[], request: Fields): BilledExtra[] {
  return chatExtras(given, request).filter(({ name }) => !freeCompletionFields.has(name));
}

/** The extras of a request for a response: its fields, and tools wherever they are offered. */
export function responseExtras(request: ResponseRequest): BilledExtra[] {
  const { input, tools, tool_choice: choice, reasoning } = request;
  const fields = Object.keys(request).filter(
    (name) => !isEmpty(request[name]) && !freeChatFields.has(name) && !freeResponseFields.has(name),
  );
  const items: readonly RequestItem[] = Array.isArray(input) ? input : [];
  const offered = items.flatMap((item, index) => toolExtras(item.tools, `input[${index}].tools`));
  assertFew(offered, 'tools in items', 'input');
  return [
    ...fields.flatMap((name) => extrasOf(name, request)),
    ...(reasoning?.mode == null || reasoning.mode === 'standard'
      ? []
      : [{ param: 'reasoning.mode', name: 'reasoning.mode' }]),
    ...toolExtras(tools, 'tools'),
    ...toolExtras(chosenTools(choice), 'tool_choice'),
    ...offered,
  ];
}

function toolExtras(tools: unknown, param: string): BilledExtra[] {
  if (!Array.isArray(tools)) return [];
  return tools.flatMap((tool: unknown, index) => {
    const at = param === 'tool_choice' ? param : `${param}[${index}]`;
    if (typeof tool !== 'object' || tool === null) return [{ param: at, name: 'tools' }];
    const { type, tools: inner } = tool as { readonly type?: unknown; readonly tools?: unknown };
    const name = typeof type === 'string' ? type : 'tools';
    const own = freeTools.has(name) ? [] : [{ param: at, name, ...namedModels(tool) }];
    return [...own, ...toolExtras(inner, `${at}.tools`)];
  });
}

/** The extras that a field asks for which is not known to be free. */
export function extrasOf(field: string, fields: Fields): BilledExtra[] {
  const { service_tier: tier, web_search_options: search } = fields;
  if (field === 'web_search_options' && isSearchContext(search)) {
    return [{ param: field, name: field, coveredBy: 'search' }];
  }
  if (field !== 'service_tier') return [{ param: field, name: field, ...namedModels(fields[field]) }];
  // What `auto` may cost is held, and vendors choose it unasked, too.
  if (tier === 'auto' || isStandardTier(tier)) return [];
  if (typeof tier !== 'string') return [{ param: field, name: field }];
  return [{ param: field, name: `${tierPrefix}${tier}`, coveredBy: 'tier' }];
}

/** Whether search options only contain the caller's location, and how much of the results the model is shown. */
function isSearchContext(options: unknown): boolean {
  if (typeof options !== 'object' || options === null) return false;
  return Object.keys(options).every((name) => name === 'search_context_size' || name === 'user_location');
}

/** The field of a request that a path within it starts with. */
export function rootOf(field: string): string {
  const dot = field.indexOf('.');
  return dot < 0 ? field : field.slice(0, dot);
}

function isEmpty(value: unknown): boolean {
  return value == null || (typeof value === 'object' && Object.keys(value).length === 0);
}
