import { maxAmount } from './impossible-amount.ts';

type Fields = Readonly<Record<string, unknown>>;

/** The tokens of a usage, each counted once. */
export interface TokenCounts {
  /** All input together: what decides between the prices of longer and shorter requests. */
  readonly input: number;
  /** Parts of it, which never are more than it. */
  readonly cached: number;
  readonly written: number;
  readonly audio: number;
  /** All output together, what was thought before it included. */
  readonly output: number;
  /** The part of it that is images. */
  readonly images: number;
}

/**
 * Reads the tokens of a usage as vendors tell it: a chat's or a legacy completion's (`prompt_tokens`), an embedding's,
 * a response's, an image's, a speech's (`input_tokens`), a transcription's of type `tokens`. Undefined where it counts none.
 * @param isOfImages the answer is images: where the output is not split, it is they
 */
export function readTokenCounts(usage: Fields, isOfImages: boolean): TokenCounts | undefined {
  const given = number(usage.prompt_tokens) ?? number(usage.input_tokens);
  const said = number(usage.completion_tokens) ?? number(usage.output_tokens);
  const total = number(usage.total_tokens);
  if (given === undefined && said === undefined && total === undefined) return undefined;
  const input = given ?? Math.max(0, (total ?? 0) - (said ?? 0));
  const inputDetails = firstObject(usage.prompt_tokens_details, usage.input_tokens_details, usage.input_token_details);
  const outputDetails = firstObject(usage.completion_tokens_details, usage.output_tokens_details);
  const output = wholeOutput(input, said ?? 0, total, number(outputDetails.reasoning_tokens) ?? 0);
  // DeepSeek and Moonshot have told it by names of their own.
  const read =
    number(inputDetails.cached_tokens) ?? number(usage.prompt_cache_hit_tokens) ?? number(usage.cached_tokens);
  const cached = Math.min(input, read ?? 0);
  const written = Math.min(input - cached, number(inputDetails.cache_write_tokens) ?? 0);
  // Of a transcription that is not split nearly all is audio.
  const heard = number(inputDetails.audio_tokens) ?? (usage.type === 'tokens' ? input : 0);
  const audio = Math.min(input - cached - written, heard);
  const images = Math.min(output, number(outputDetails.image_tokens) ?? (isOfImages ? output : 0));
  return { input, cached, written, audio, output, images };
}

/** All tokens of a usage, of input and output; undefined where it counts none. */
export function countAllTokens(usage: unknown): number | undefined {
  if (typeof usage !== 'object' || usage === null) return undefined;
  const counts = readTokenCounts(usage as Fields, false);
  return counts && counts.input + counts.output;
}

/** OpenAI's reasoning tokens are a part of the output; xAI counts them beside it, which its total tells. */
function wholeOutput(input: number, said: number, total: number | undefined, reasoning: number): number {
  const isBeside = total !== undefined && reasoning > 0 && total - input - said >= reasoning;
  return isBeside ? said + reasoning : said;
}

function firstObject(...values: readonly unknown[]): Fields {
  return (values.find((value) => typeof value === 'object' && value !== null) ?? {}) as Fields;
}

/** A count, whole, never negative and never beyond `maxAmount`; undefined where it is none. */
function number(value: unknown): number | undefined {
  if (typeof value !== 'number' || !Number.isFinite(value)) return undefined;
  return Math.min(maxAmount, Math.max(0, Math.ceil(value)));
}
