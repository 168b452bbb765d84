import { parseExact, stringifyExact } from '../../shared/capabilities/exact-json.ts';
import type { RoutedModel } from '../../shared/catalogue/catalogue.ts';
import { anthropicModelTraits } from '../../shared/vendors/anthropic-models.ts';
import { bedrockModelFamily } from '../../shared/vendors/bedrock-models.ts';
import { acceptsAnthropicFields } from '../../shared/vendors/field-support.ts';
import { requestText } from '../vendors/request-body.ts';
import type { VendorCall } from '../vendors/vendor.ts';

type Fields = Record<string, unknown>;

/** The fields of a message's chat that OpenAI's chat documentation does not have. */
const hints = ['cache_control', 'top_k', 'reasoning_content', 'thinking_blocks', 'thinking_offsets', 'extra_content'];
/** Anthropic's own fields, which `reasoning_effort` replaces. */
const anthropicFields = ['thinking', 'output_config'];
const hint = new RegExp(`"(${hints.join('|')})":`);
const anthropicField = new RegExp(`"(${anthropicFields.join('|')})":`);

type Target = Pick<RoutedModel, 'chat' | 'vendorRow' | 'route'>;

/**
 * The request of a message without fields that its vendor would refuse: OpenAI returns 400 for unknown fields, and for an effort
 * if a model does not reason; Anthropic's own fields go only to vendors that support them. Only a request that may contain such a
 * field is parsed.
 */
export function withoutHints(request: string, target: Target): string {
  const { chat, vendorRow } = target;
  const isStrict = refusesHints(target);
  const isAnthropic = acceptsAnthropicFields(vendorRow);
  const mayHoldForeign =
    (!isAnthropic && anthropicField.test(request)) ||
    ((isStrict || chat?.effort === false) && request.includes('"reasoning_effort":')) ||
    (isStrict && hint.test(request));
  if (!mayHoldForeign) return request;
  const fields = parseExact(request) as Fields;
  if (!isAnthropic) {
    const { thinking } = fields;
    for (const name of anthropicFields) delete fields[name];
    if (thinksOnlyIfAsked(fields, thinking, target)) fields.thinking = thinking;
  }
  // OpenAI's reasoning models cannot be told not to reason, except some of the newest.
  if (chat?.effort === false || (isStrict && fields.reasoning_effort === 'none')) delete fields.reasoning_effort;
  if (!isStrict) return stringifyExact(fields);
  return stringifyExact({
    ...without(fields),
    messages: messagesWithout(fields, vendorRow),
    ...(fields.tools !== undefined && { tools: listOf(fields.tools).map(without) }),
  });
}

/**
 * Whether adaptive thinking was requested without an effort, which alone says so in a chat, of a Claude at Bedrock: other models
 * that think by themselves need no word for it.
 */
function thinksOnlyIfAsked({ reasoning_effort: effort }: Fields, thinking: unknown, target: Target): boolean {
  const { vendorRow, route } = target;
  if (vendorRow.dialect !== 'bedrock' || effort !== undefined) return false;
  if ((thinking as Fields | undefined)?.type !== 'adaptive' || bedrockModelFamily(route.model) !== 'claude')
    return false;
  return anthropicModelTraits(route.model).thinking === 'adaptive';
}

/** The chat of a response without the fields that its vendor would refuse in earlier turns, which another vendor may have produced. */
export function withoutHintsInTurns(request: string, target: Target): string {
  if (!refusesHints(target) || !hint.test(request)) return request;
  const fields = parseExact(request) as Fields;
  return stringifyExact({ ...fields, messages: messagesWithout(fields, target.vendorRow) });
}

/** Fields in which the gateway shows another vendor's thoughts and signatures; clients send them back with its answers. */
const thoughts = ['reasoning_content', 'thinking_blocks', 'extra_content'];
/** How their names end: a search that begins at an underscore takes a tenth of the time of one that begins at a quotation mark. */
const thoughtEndings = ['_content":', '_blocks":'];

/**
 * A chat for a vendor that refuses unknown fields, without the thoughts of earlier turns that another vendor has made: a
 * conversation may change its model, or its model's vendor by a fallback. Only a chat that may contain such a field is parsed.
 */
export function withoutThoughts(call: VendorCall, { vendorRow }: Target): VendorCall {
  const { request } = call;
  if (!thoughtEndings.some((ending) => request.includes(ending))) return call;
  if (!thoughts.some((name) => request.includes(`"${name}":`))) return call;
  const fields = parseExact(requestText(request)) as Fields;
  return { ...call, request: stringifyExact({ ...fields, messages: messagesWithout(fields, vendorRow) }) };
}

function refusesHints({ chat, vendorRow }: Pick<Target, 'chat' | 'vendorRow'>): boolean {
  return chat?.hints === false || vendorRow.chat?.hints === false;
}

function messagesWithout({ messages }: Fields, { chat }: Target['vendorRow']): Fields[] {
  // A vendor with another name for it accepts it: its adapter renames it.
  const keepsReasoning = chat?.reasoning !== undefined;
  return listOf(messages).map((message) => {
    const { reasoning_content: thought } = message;
    const rest = withoutInMessage(message);
    return keepsReasoning && thought !== undefined ? { ...rest, reasoning_content: thought } : rest;
  });
}

function withoutInMessage(message: Fields): Fields {
  const { content, tool_calls: calls } = message;
  return {
    ...without(message),
    ...(Array.isArray(content) && { content: listOf(content).map(without) }),
    ...(calls !== undefined && { tool_calls: listOf(calls).map(without) }),
  };
}

function without(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !hints.includes(name)));
}

function listOf(value: unknown): Fields[] {
  return Array.isArray(value) ? (value as Fields[]) : [];
}
