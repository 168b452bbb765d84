import type { MediaCapability } from '../catalogue/media-fields.ts';
import { anthropicModelTraits } from './anthropic-models.ts';
import { bedrockModelFamily } from './bedrock-models.ts';
import type { ChatFieldSupport, FieldSupport } from './vendor-description.ts';
import { ownWire, type VendorRow } from './vendors.ts';

/** Maximum characters of a field that is known with its parts. */
const maxKnown = 200;

/** The support of a field; the name may come from a caller. */
export function supportOf(support: ChatFieldSupport, field: string): FieldSupport {
  if (Object.hasOwn(support, field)) return support[field] as FieldSupport;
  // A part of a field without an entry has the field's support. A caller's name may have as many parts as a body has characters.
  const dot = field.length > maxKnown ? field.indexOf('.') : field.lastIndexOf('.');
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

/** Fields whose empty object asks for something: a search with all its defaults. */
const meantWhenEmpty = new Set(['web_search_options', 'search_parameters']);

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
  return Object.keys(value).length === 0 && !meantWhenEmpty.has(name);
}

function formatField(format: unknown): string {
  return `response_format.${String((format as { type?: unknown }).type)}`;
}

/** Made once for each row. */
const known = new WeakMap<VendorRow, { readonly support: ChatFieldSupport | undefined }>();

/** What becomes of a chat's fields at a vendor; undefined where all of them pass through. */
export function chatFieldSupport(row: VendorRow): ChatFieldSupport | undefined {
  let found = known.get(row);
  if (found === undefined) {
    found = { support: rowSupport(row) };
    known.set(row, found);
  }
  return found.support;
}

/**
 * The same at one of the vendor's models, some of which refuse more than their vendor does: for callers who prefer an answer without
 * such fields. A model may take one of these values, such as a temperature above 1 in place of its default.
 */
export function modelFieldSupport(row: VendorRow, model: string): ChatFieldSupport | undefined {
  const support = chatFieldSupport(row);
  if (row.dialect !== 'anthropic' && !(row.dialect === 'bedrock' && bedrockModelFamily(model) === 'claude'))
    return support;
  const { samples, thinking } = anthropicModelTraits(model);
  return {
    ...support,
    ...(samples === 'by_defaults' && { temperature: 'rejected', top_p: 'rejected', top_k: 'rejected' }),
    ...(thinking === 'none' && { reasoning_effort: 'rejected' }),
  };
}

/** Whether a vendor takes Anthropic's own words for how much to think, `thinking` and `output_config`, as they are. */
export function acceptsAnthropicFields(row: VendorRow): boolean {
  return chatFieldSupport(row)?.thinking === 'native';
}

function rowSupport({ dialect, chat }: VendorRow): ChatFieldSupport | undefined {
  if (chat === undefined) return ownWire(dialect)?.chatFields;
  const mapped = Object.keys(chat.renamed ?? {}).map((field) => [field, 'translated'] as const);
  const dropped: ChatFieldSupport = chat.streamOptions === false ? { stream_options: 'ignored' } : {};
  const inAnswers: ChatFieldSupport = chat.parallelToolCalls === false ? { parallel_tool_calls: 'translated' } : {};
  return { ...dropped, ...inAnswers, ...chat.fields, ...Object.fromEntries(mapped) };
}

/** The support of a field of `givenMediaFields` at a vendor, with one of its models. */
export function mediaFieldSupport(
  { row, capability, model }: { row: Pick<VendorRow, 'mediaFields'>; capability: MediaCapability; model: string },
  field: string,
): FieldSupport {
  const known = row.mediaFields?.[capability];
  if (known === undefined) return 'native';
  return supportOf(typeof known === 'function' ? known(model) : known, field);
}
