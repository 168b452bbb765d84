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
  const inputDetails = firstObject(usage.prompt_tokens_details, usage.input_tokens_details, usage.input_token_details);
  const outputDetails = firstObject(usage.completion_tokens_details, usage.output_tokens_details);
  const toldInput = given ?? Math.max(0, (total ?? 0) - (said ?? 0));
  const beside = countedBeside(
    (total ?? 0) - toldInput - (said ?? 0),
    number(inputDetails.audio_tokens) ?? 0,
    number(outputDetails.reasoning_tokens) ?? 0,
  );
  const input = Math.min(maxAmount, toldInput + beside.audio);
  const output = Math.min(maxAmount, (said ?? 0) + beside.reasoning);
  const cached = Math.min(input, number(inputDetails.cached_tokens) ?? cachedElsewhere(usage) ?? 0);
  const written = Math.min(input - cached, number(inputDetails.cache_write_tokens) ?? 0);
  // Of a transcription that is not split nearly all is audio.
  const heard = number(inputDetails.audio_tokens) ?? (usage.type === 'tokens' ? input : 0);
  const audio = Math.min(input - cached - written, heard);
  const images = Math.min(output, number(outputDetails.image_tokens) ?? (isOfImages ? output : 0));
  return { input, cached, written, audio, output, images };
}

/**
 * The cached tokens of a usage that has them under a name of its vendor's own (DeepSeek, Moonshot, older answers of Mistral);
 * undefined where it does not.
 */
export function cachedElsewhere(usage: Fields): number | undefined {
  return number(usage.prompt_cache_hit_tokens) ?? number(usage.cached_tokens) ?? number(usage.num_cached_tokens);
}

/** All tokens of a usage, of input and output; undefined where it counts none. */
export function countAllTokens(usage: unknown): number | undefined {
  if (typeof usage !== 'object' || usage === null) return undefined;
  const counts = readTokenCounts(usage as Fields, false);
  return counts && counts.input + counts.output;
}

/**
 * What a vendor counts beside the input and the output: xAI its reasoning, Mistral the audio of a chat. OpenAI counts both as
 * parts of them. The total tells: as much as fits into what it has over is beside.
 * @param left the total without the input and the output
 */
function countedBeside(left: number, audio: number, reasoning: number): { audio: number; reasoning: number } {
  if (audio + reasoning <= left) return { audio, reasoning };
  const isAudio = audio <= left && (audio > reasoning || reasoning > left);
  const isReasoning = !isAudio && reasoning <= left;
  return { audio: isAudio ? audio : 0, reasoning: isReasoning ? reasoning : 0 };
}

function firstObject(...values: readonly unknown[]): Fields {
  return (values.find((value) => typeof value === 'object' && value !== null) ?? {}) as Fields;
}

/** A count, whole, never negative and never beyond `maxAmount`; undefined where it is none. */
function number(value: unknown): number | undefined {
  if (typeof value !== 'number' || !Number.isFinite(value)) return undefined;
  return Math.min(maxAmount, Math.max(0, Math.ceil(value)));
}
