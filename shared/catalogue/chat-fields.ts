/**
 * Support of a chat request's field at a vendor: `native` (unchanged), `translated` to the vendor's own fields, `ignored` (a
 * hint that changes nothing requested) or `rejected` (leaving it out would change the answer's meaning).
 */
export type FieldSupport = 'native' | 'translated' | 'ignored' | 'rejected';

/**
 * Support of a chat's fields at one vendor, by OpenAI's names; `response_format.json_schema` is the field with that type. A
 * field without an entry has the support of `*`, or is native if that is missing.
 */
export type ChatFieldSupport = Readonly<Record<string, FieldSupport>>;

/** The support of a field; the name may come from a caller. */
export function supportOf(support: ChatFieldSupport, field: string): FieldSupport {
  if (Object.hasOwn(support, field)) return support[field] as FieldSupport;
  // A part of a field without an entry has the field's support.
  const dot = field.lastIndexOf('.');
  return dot < 0 ? (support['*'] ?? 'native') : supportOf(support, field.slice(0, dot));
}

/** OpenAI's own defaults: a field with such a value requests nothing. */
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

/** Fields of every chat, and those that the gateway sets. */
const always = new Set(['model', 'messages', 'stream']);

/**
 * Names of the fields by which a chat request asks for anything: those with values other than OpenAI's defaults. A format has
 * its type appended: `response_format.json_schema`.
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
