/**
 * What becomes of one field of a chat request at a vendor: `kept` as it is, `mapped` to the vendor's own words, `dropped`
 * (a hint that changes nothing that was asked for) or `refused` (leaving it out would change the answer's meaning).
 */
export type FieldSupport = 'native' | 'translated' | 'ignored' | 'rejected';

/**
 * Support of a chat's fields at one vendor, by OpenAI's names; `response_format.json_schema` is the field with that type.
 * A field without an entry has that of `*`, or where there is none is kept.
 */
export type ChatFieldSupport = Readonly<Record<string, FieldSupport>>;

/** The support of a field, whoever chose its name. */
export function supportOf(support: ChatFieldSupport, field: string): FieldSupport {
  if (Object.hasOwn(support, field)) return support[field] as FieldSupport;
  // A part of a field that no entry names fares as the field.
  const dot = field.lastIndexOf('.');
  return dot < 0 ? (support['*'] ?? 'native') : supportOf(support, field.slice(0, dot));
}

/** OpenAI's own defaults: with such a value a field asks for nothing. */
const defaults = new Map<string, unknown>([
  ['n', 1],
  ['logprobs', false],
  ['top_logprobs', 0],
  ['temperature', 1],
  ['top_p', 1],
  ['presence_penalty', 0],
  ['frequency_penalty', 0],
  ['parallel_tool_calls', true],
  ['tool_choice', 'auto'],
  ['function_call', 'auto'],
  ['service_tier', 'auto'],
  ['store', false],
]);

/** What every chat has, and what the gateway says itself. */
const always = new Set(['model', 'messages', 'stream']);

/**
 * Names of the fields by which a chat request asks for anything: those with other values than OpenAI's defaults. A format
 * has its type behind it: `response_format.json_schema`.
 */
export function givenChatFields(request: Readonly<Record<string, unknown>>): string[] {
  const given: string[] = [];
  for (const name of Object.keys(request)) {
    if (always.has(name) || isDefault(name, request[name])) continue;
    given.push(name === 'response_format' ? formatField(request[name]) : name);
  }
  return given;
}

function isDefault(name: string, value: unknown): boolean {
  if (value === null || value === undefined || value === defaults.get(name)) return true;
  if (typeof value !== 'object') return false;
  if (name === 'response_format') return formatField(value) === 'response_format.text';
  if (name === 'modalities') return Array.isArray(value) && value.every((modality) => modality === 'text');
  return Object.keys(value).length === 0;
}

function formatField(format: unknown): string {
  return `response_format.${String((format as { type?: unknown }).type)}`;
}
