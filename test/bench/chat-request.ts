/** The requests of the bench, and the text that the minimal vendor answers them with. */

/** How the minimal vendor streams: at once, 50 tokens a second, or one token every 10 s. */
export type Pace = 'fast' | 'paced' | 'slow';

export interface BenchChatRequest {
  model: string;
  messages: { role: string; content: string }[];
  temperature: number;
  stream: boolean;
  user: string;
}

/** A small chat request: held, or streamed at a pace with so many tokens. */
export function benchChatRequest(stream: false | { pace: Pace; tokens: number }): BenchChatRequest {
  return {
    model: 'gpt-4o-mini',
    messages: [
      { role: 'system', content: 'You are a helpful assistant.' },
      { role: 'user', content: 'Write a short sentence about rivers, canals and the gates between them.' },
    ],
    temperature: 0.7,
    stream: stream !== false,
    user: stream ? `bench:${stream.pace}:${stream.tokens}` : 'bench:held',
  };
}

/** The text of the token at an index: each differs, so that a lost, repeated or misplaced one shows. */
export function benchToken(index: number): string {
  return ` word${index}`;
}

/** The text of an answer of so many tokens. */
export function benchText(tokens: number): string {
  return Array.from({ length: tokens }, (_, index) => benchToken(index)).join('');
}
