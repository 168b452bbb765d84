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
  readonly dimensions?: number;
}

/** OpenAI's `usage` object; null if the vendor counted nothing. */
type Usage = Readonly<Record<string, unknown>> | null;

const noUsage = { prompt_tokens: 0, total_tokens: 0 };

const bodyStart = '{"data":[';
const usageStart = '],"usage":';
const itemStart = (index: number): string => `{"object":"embedding","index":${index},"embedding":`;

/**
 * The `end` frame: `{"data": [{"object": "embedding", "index", "embedding"}, …], "usage"}`. Its items are in wire format, so that
 * no process has to parse their millions of numbers; vectors in bytes stay as they are, and the frame is bytes in parts.
 * @param vectors JSON without white space, in the order of the inputs.
 * @param usage as the vendor counted it; null: written as zeros until the worker has counted, because OpenAI's wire format
 * requires counts.
 */
export function embeddingsBody(vectors: readonly string[], usage: Usage): string;
export function embeddingsBody(vectors: readonly (string | Buffer)[], usage: Usage): string | readonly Buffer[];
export function embeddingsBody(vectors: readonly (string | Buffer)[], usage: Usage): string | readonly Buffer[] {
  if (vectors.every((vector) => typeof vector === 'string')) {
    const items = vectors.map((vector, index) => `${itemStart(index)}${vector}}`);
    return `${bodyStart}${items.join(',')}${usageText(usage)}`;
  }
  const parts = vectors.flatMap((vector, index) => [
    Buffer.from(`${index === 0 ? bodyStart : '},'}${itemStart(index)}`),
    typeof vector === 'string' ? Buffer.from(vector) : vector,
  ]);
  return [...parts, Buffer.from('}'), Buffer.from(usageText(usage))];
}

/** Replaces the counts in a body. */
export function withEmbeddingUsage(body: string | readonly Buffer[], usage: Usage): string | readonly Buffer[] {
  if (typeof body === 'string') return `${body.slice(0, body.lastIndexOf(usageStart))}${usageText(usage)}`;
  return [...body.slice(0, -1), Buffer.from(usageText(usage))];
}

/** The end of a body, in bytes a part of its own. */
function usageText(usage: Usage): string {
  return `${usageStart}${JSON.stringify(usage ?? noUsage)}}`;
}
