import { z } from 'zod';
import { compiledOnUse } from './compiled-on-use.ts';
import { brokenTextRule, type TextOrTokens } from './text-or-tokens.ts';

const fields = z.looseObject({
  model: z.string().min(1).max(256),
  input: z.union([z.string(), z.array(z.unknown())]),
  dimensions: z.int().min(1).optional(),
  encoding_format: z.enum(['float', 'base64']).optional(),
  user: z.string().optional(),
  // Nothing of it can be streamed.
  stream: z.literal(false).nullish(),
});

/**
 * The schema of OpenAI's `CreateEmbeddingRequest` (https://platform.openai.com/docs/api-reference/embeddings/create).
 * Unknown fields are kept. `input` is a TextOrTokens once it is validated.
 */
export const embeddingRequest = compiledOnUse(
  fields.check(({ value, issues }) => {
    const broken = brokenTextRule(value.input, { name: 'input', emptyTexts: false });
    if (broken) issues.push({ code: 'custom', input: value, path: broken.path, message: broken.message });
  }),
);

/** What an embedding job asks of its vendor, as far as the worker looks at it. */
export interface EmbeddingJob {
  readonly input: TextOrTokens;
  readonly encoding_format?: 'float' | 'base64';
}

/** OpenAI's `usage` object; null where the vendor counted nothing. */
type Usage = Readonly<Record<string, unknown>> | null;

const noUsage = { prompt_tokens: 0, total_tokens: 0 };

const bodyStart = '{"data":[';
const usageStart = '],"usage":';
const itemStart = (index: number): string => `{"object":"embedding","index":${index},"embedding":`;
/** No vector holds this: it is made of numbers, or is base64. */
const anyItemStart = /\{"object":"embedding","index":(\d+),/g;

/**
 * The text of an `end` frame: `{"data": [{"object": "embedding", "index", "embedding"}, …], "usage"}`. It holds the items as
 * they stand on the wire, so that nobody on the way parses their millions of numbers.
 * @param vectors JSON texts without white space, in the order of the inputs.
 * @param usage as the vendor counted it; null: shown as zeros until the worker has counted, because OpenAI's wire has no
 *   answer without counts.
 */
export function embeddingsBody(vectors: readonly string[], usage: Usage): string {
  const items = vectors.map((vector, index) => `${itemStart(index)}${vector}}`);
  return compose(items, usage);
}

/** How many embeddings a body holds. */
export function countEmbeddings(body: string): number {
  const last = body.lastIndexOf('{"object":"embedding","index":');
  return last < 0 ? 0 : Number.parseInt(body.slice(last + '{"object":"embedding","index":'.length), 10) + 1;
}

/** A body with other counts than it had. */
export function withEmbeddingUsage(body: string, usage: Usage): string {
  return `${body.slice(0, body.lastIndexOf(usageStart))}${usageStart}${JSON.stringify(usage ?? noUsage)}}`;
}

/** Joins the bodies of several calls, each with the index that its first input has among all. */
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
