import type OpenAI from 'openai';

type Held = OpenAI.Chat.ChatCompletionCreateParamsNonStreaming;
type Streamed = OpenAI.Chat.ChatCompletionCreateParamsStreaming;

/** A chat request of one user message; `more` holds further fields, those that no client knows (`sandbox`) among them. */
export function held(text: string, more: object = {}): Held {
  return { model: 'sandbox-chat', messages: [{ role: 'user', content: text }], ...more };
}

/** The same, to be streamed. */
export function streamed(text: string, more: object = {}): Streamed {
  return { ...held(text, more), stream: true };
}

/** What of a streamed answer is text, joined. */
export async function streamedText(stream: AsyncIterable<OpenAI.Chat.ChatCompletionChunk>): Promise<string> {
  let text = '';
  for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? '';
  return text;
}
