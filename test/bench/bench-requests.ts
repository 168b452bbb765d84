/** The requests of the bench, and what the minimal vendor answers them with. */

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

const kilobyte = 1_000;
const words = 'the gates between rivers and canals hold the water while a boat is lifted from one level to the next ';

/**
 * A chat request with a long prompt, as agents send: a conversation of messages of 4 KB each.
 * @param kilobytes of its prompt; 300 are some 75,000 tokens
 */
export function benchLongChatRequest(
  kilobytes: number,
  ...stream: Parameters<typeof benchChatRequest>
): BenchChatRequest {
  const text = words.repeat(Math.ceil((4 * kilobyte) / words.length)).slice(0, 4 * kilobyte);
  const messages = Array.from({ length: kilobytes / 4 }, (_, index) => ({
    role: index % 2 === 0 ? 'user' : 'assistant',
    content: `${index} "${text}"\n`,
  }));
  const request = benchChatRequest(...stream);
  return { ...request, messages: [...request.messages.slice(0, 1), ...messages, ...request.messages.slice(1)] };
}

/** Texts of one embedding request, and dimensions of each vector. */
const embeddingTexts = 32;
const embeddingDimensions = 1_536;

/** A request for 32 embeddings as base64, the format that the official clients ask for. */
export function benchEmbeddingRequest(): object {
  const input = Array.from({ length: embeddingTexts }, (_, index) => `${index} ${words}`);
  return { model: 'text-embedding-3-small', input, encoding_format: 'base64' };
}

/** The vendor's answer to it: 270 KB. */
export function benchEmbeddings(): object {
  const data = Array.from({ length: embeddingTexts }, (_, index) => {
    const vector = Float32Array.from({ length: embeddingDimensions }, (_, at) => Math.sin(at * 7 + index) / 40);
    return { object: 'embedding', index, embedding: Buffer.from(vector.buffer).toString('base64') };
  });
  const usage = { prompt_tokens: 700, total_tokens: 700 };
  return { object: 'list', data, model: 'text-embedding-3-small', usage };
}

/** A request for an image as base64. */
export function benchImageRequest(): object {
  return { model: 'gpt-image-2', prompt: 'Two boats in a lock', size: '1024x1024' };
}

/** The vendor's answer to it: an image of 1.5 MB as base64. */
export function benchImages(): object {
  const bytes = Buffer.from(Uint8Array.from({ length: 1_125_000 }, (_, at) => (at * 2_654_435_761) >>> 24));
  const usage = {
    total_tokens: 1_070,
    input_tokens: 14,
    output_tokens: 1_056,
    input_tokens_details: { text_tokens: 14, image_tokens: 0 },
  };
  return { created: 1_741_569_952, data: [{ b64_json: bytes.toString('base64') }], usage };
}

/** The text of the token at an index: each differs, so that a lost, repeated or misplaced one shows. */
export function benchToken(index: number): string {
  return ` word${index}`;
}

/** The text of an answer of so many tokens. */
export function benchText(tokens: number): string {
  return Array.from({ length: tokens }, (_, index) => benchToken(index)).join('');
}
