import type { RoutedModel } from '../../shared/catalogue/catalogue.ts';
import { takesAnthropicWords } from '../../shared/vendors/chat-field-support.ts';

type Fields = Record<string, unknown>;

/** The fields of a message's chat that OpenAI's document of chats does not have. */
const hints = ['cache_control', 'top_k', 'reasoning_content', 'thinking_blocks', 'thinking_offsets', 'extra_content'];
/** Anthropic's own words, for which `reasoning_effort` stands in. */
const anthropicWords = ['thinking', 'output_config'];
const hint = new RegExp(`"(${hints.join('|')})":`);
const anthropicWord = new RegExp(`"(${anthropicWords.join('|')})":`);

type Target = Pick<RoutedModel, 'chat' | 'vendorRow'>;

/**
 * The request of a message without what its vendor would refuse it for: OpenAI answers 400 to fields that it does not know,
 * and to an effort where a model does not reason; Anthropic's own words are for whoever knows them. Everything it holds is
 * text for the others; only what may hold such a field is parsed.
 */
export function withoutHints(request: string, { chat, vendorRow }: Target): string {
  const isStrict = refusesHints({ chat, vendorRow });
  const isAnthropic = takesAnthropicWords(vendorRow);
  const mayHoldForeign =
    (!isAnthropic && anthropicWord.test(request)) ||
    ((isStrict || chat?.effort === false) && request.includes('"reasoning_effort":')) ||
    (isStrict && hint.test(request));
  if (!mayHoldForeign) return request;
  const fields = JSON.parse(request) as Fields;
  if (!isAnthropic) for (const name of anthropicWords) delete fields[name];
  // OpenAI's reasoning models cannot be told not to reason, but for some of the newest.
  if (chat?.effort === false || (isStrict && fields.reasoning_effort === 'none')) delete fields.reasoning_effort;
  if (!isStrict) return JSON.stringify(fields);
  return JSON.stringify({
    ...without(fields),
    messages: messagesWithout(fields, vendorRow),
    ...(fields.tools !== undefined && { tools: listOf(fields.tools).map(without) }),
  });
}

/** The chat of a response without what its vendor would refuse in the turns before, which another vendor may have made. */
export function withoutHintsInTurns(request: string, target: Target): string {
  if (!refusesHints(target) || !hint.test(request)) return request;
  const fields = JSON.parse(request) as Fields;
  return JSON.stringify({ ...fields, messages: messagesWithout(fields, target.vendorRow) });
}

function refusesHints({ chat, vendorRow }: Target): boolean {
  return chat?.hints === false || vendorRow.chat?.hints === false;
}

function messagesWithout({ messages }: Fields, { chat }: Target['vendorRow']): Fields[] {
  // A vendor that calls it otherwise takes it: its adapter renames it.
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
