import { z } from 'zod';
import { compiledOnUse } from './compiled-on-use.ts';
import { brokenTextRule, type TextOrTokens } from './text-or-tokens.ts';

const fields = z.looseObject({
  model: z.string().min(1).max(256),
  input: z.union([z.string(), z.array(z.unknown())]),
  dimensions: z.int().min(1).optional(),
  encoding_format: z.enum(['float', 'base64']).optional(),
  user: z.string().optional(),
  // Embeddings cannot be streamed.
  stream: z.literal(false).nullish(),
});

/**
 * The schema of OpenAI's `CreateEmbeddingRequest` (https://platform.openai.com/docs/api-reference/embeddings/create). Unknown
 * fields are kept. `input` is a TextOrTokens once it is validated.
 */
export const embeddingRequest = compiledOnUse(
  fields.check(({ value, issues }) => {
    const broken = brokenTextRule(value.input, { name: 'input', emptyTexts: false });
    if (broken) issues.push({ code: 'custom', input: value, path: broken.path, message: broken.message });
  }),
);

/** The fields of an embedding job that the worker reads. */
export interface EmbeddingJob {
  readonly input: TextOrTokens;
  readonly encoding_format?: 'float' | 'base64';
}

/** OpenAI's `usage` object; null if the vendor counted nothing. */
type Usage = Readonly<Record<string, unknown>> | null;

const noUsage = { prompt_tokens: 0, total_tokens: 0 };

const bodyStart = '{"data":[';
const usageStart = '],"usage":';
const itemStart = (index: number): string => `{"object":"embedding","index":${index},"embedding":`;
/** Cannot occur inside a vector, which consists of numbers or base64. */
const anyItemStart = /\{"object":"embedding","index":(\d+),/g;

/**
 * The text of an `end` frame: `{"data": [{"object": "embedding", "index", "embedding"}, …], "usage"}`. Its items are in wire
 * format, so that no process has to parse their millions of numbers.
 * @param vectors JSON texts without white space, in the order of the inputs.
 * @param usage as the vendor counted it; null: written as zeros until the worker has counted, because OpenAI's wire format
 * requires counts.
 */
export function embeddingsBody(vectors: readonly string[], usage: Usage): string {
  const items = vectors.map((vector, index) => `${itemStart(index)}${vector}}`);
  return compose(items, usage);
}

/** The number of embeddings in a body. */
export function countEmbeddings(body: string): number {
  const last = body.lastIndexOf('{"object":"embedding","index":');
  return last < 0 ? 0 : Number.parseInt(body.slice(last + '{"object":"embedding","index":'.length), 10) + 1;
}

/** Replaces the counts in a body. */
export function withEmbeddingUsage(body: string, usage: Usage): string {
  return `${body.slice(0, body.lastIndexOf(usageStart))}${usageStart}${JSON.stringify(usage ?? noUsage)}}`;
}

/** Joins the bodies of several calls, each with the index of its first input among all inputs. */
export function joinEmbeddings(bodies: readonly { text: string; firstIndex: number }[], usage: Usage): string {
  const items = bodies.map(({ text, firstIndex }) => {
    const data = text.slice(bodyStart.length, text.lastIndexOf(usageStart));
    if (firstIndex === 0) return data;
    return data.replace(anyItemStart, (_, index) => `{"object":"embedding","index":${firstIndex + Number(index)},`);
  });
  return compose(items, usage);
}

function compose(items: readonly string[], usage: Usage): string {
  return `${bodyStart}${items.join(',')}${usageStart}${JSON.stringify(usage ?? noUsage)}}`;
}
