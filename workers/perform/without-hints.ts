import type { Model } from '../../shared/catalogue/models.ts';

type Fields = Record<string, unknown>;

/** The fields of a message's chat that OpenAI's document of chats does not have. */
const hints = ['cache_control', 'top_k', 'reasoning_content', 'thinking_blocks'];
const hint = new RegExp(`"(${hints.join('|')})":`);

/**
 * The request of a message without what its vendor would refuse it for: OpenAI answers 400 to fields that it does not know,
 * and to an effort where a model does not reason. Everything it holds is text for the others; only what may hold such a
 * field is parsed.
 */
export function withoutHints(request: string, { chat }: Pick<Model, 'chat'>): string {
  if (chat === undefined || !(hint.test(request) || request.includes('"reasoning_effort":'))) return request;
  const fields = JSON.parse(request) as Fields;
  // OpenAI's reasoning models cannot be told not to reason, but for some of the newest.
  if (!chat.effort || (!chat.hints && fields.reasoning_effort === 'none')) delete fields.reasoning_effort;
  if (chat.hints) return JSON.stringify(fields);
  return JSON.stringify({
    ...without(fields),
    messages: listOf(fields.messages).map(withoutInMessage),
    ...(fields.tools !== undefined && { tools: listOf(fields.tools).map(without) }),
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
