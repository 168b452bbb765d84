import Anthropic from '@anthropic-ai/sdk';
import { typedFetch } from './anthropic-types.ts';
import type { TestGateway } from './gateway.ts';

/** Anthropic's own client against a gateway; retries are off. Every answer that it gets is held against its types. */
export function anthropicClient(
  gateway: TestGateway,
  options: { apiKey?: string; authToken?: string; maxRetries?: number; timeout?: number } = {},
): Anthropic {
  const { apiKey, authToken } = options;
  return new Anthropic({
    baseURL: gateway.url,
    apiKey: authToken === undefined ? (apiKey ?? gateway.apiKey) : null,
    authToken: authToken ?? null,
    maxRetries: options.maxRetries ?? 0,
    fetch: typedFetch,
    ...(options.timeout === undefined ? {} : { timeout: options.timeout }),
  });
}

type Held = Anthropic.MessageCreateParamsNonStreaming;

/** A request of one user message; `more` holds further fields, those that no client knows (`sandbox`) among them. */
export function message(text: string, more: object = {}): Held {
  return { model: 'sandbox-chat', max_tokens: 4096, messages: [{ role: 'user', content: text }], ...more };
}

/** What of a message is text, joined. */
export function textOfMessage({ content }: Pick<Anthropic.Message, 'content'>): string {
  return content.map((block) => (block.type === 'text' ? block.text : '')).join('');
}

/** The calls of a message. */
export function callsOf({ content }: Pick<Anthropic.Message, 'content'>): Anthropic.ToolUseBlock[] {
  return content.filter((block): block is Anthropic.ToolUseBlock => block.type === 'tool_use');
}
