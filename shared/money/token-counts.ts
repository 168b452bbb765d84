type Fields = Readonly<Record<string, unknown>>;

/** The tokens of a usage, each counted once. */
export interface TokenCounts {
  /** All input together: selects the price tier by request length. */
  readonly input: number;
  /** Parts of `input`, never more than it. */
  readonly cached: number;
  readonly written: number;
  /** The part of `written` that is kept for an hour. */
  readonly writtenForHour: number;
  readonly audio: number;
  readonly pictures: number;
  /** All output together, including reasoning. */
  readonly output: number;
  /** The part of `output` that is images. */
  readonly images: number;
}

/**
 * Reads the tokens of a vendor's usage: a chat's or a legacy completion's (`prompt_tokens`), an embedding's, a response's, an
 * image's, a speech's (`input_tokens`), a transcription's of type `tokens`. Undefined if it counts none.
 * @param isOfImages the answer is images: output without details counts as images
 * @param isForHour what is written to the cache without details counts as kept for an hour
 */
export function readTokenCounts(usage: Fields, isOfImages: boolean, isForHour = false): TokenCounts | undefined {
  const reportedInput = number(usage.prompt_tokens) ?? number(usage.input_tokens);
  const reportedOutput = number(usage.completion_tokens) ?? number(usage.output_tokens);
  const total = number(usage.total_tokens);
  if (reportedInput === undefined && reportedOutput === undefined && total === undefined) return undefined;
  const inputDetails = firstObject(usage.prompt_tokens_details, usage.input_tokens_details, usage.input_token_details);
  const outputDetails = firstObject(usage.completion_tokens_details, usage.output_tokens_details);
  const baseInput = reportedInput ?? Math.max(0, (total ?? 0) - (reportedOutput ?? 0));
  const beside = countedBeside(
    (total ?? 0) - baseInput - (reportedOutput ?? 0),
    number(inputDetails.audio_tokens) ?? 0,
    number(outputDetails.reasoning_tokens) ?? 0,
  );
  const input = Math.min(maxAmount, baseInput + beside.audio);
  const output = Math.min(maxAmount, (reportedOutput ?? 0) + beside.reasoning);
  const cached = Math.min(input, number(inputDetails.cached_tokens) ?? cachedElsewhere(usage) ?? 0);
  const written = Math.min(input - cached, number(inputDetails.cache_write_tokens) ?? 0);
  const { ephemeral_1h_input_tokens: forHour } = firstObject(inputDetails.cache_creation_token_details);
  const writtenForHour = Math.min(written, number(forHour) ?? (isForHour ? written : 0));
  // Without details, nearly all input of a transcription is audio.
  const audioInput = number(inputDetails.audio_tokens) ?? (usage.type === 'tokens' ? input : 0);
  const audio = Math.min(input - cached - written, audioInput);
  const pictures = Math.min(input - cached - written - audio, number(inputDetails.image_tokens) ?? 0);
  const images = Math.min(output, number(outputDetails.image_tokens) ?? (isOfImages ? output : 0));
  return { input, cached, written, writtenForHour, audio, pictures, output, images };
}

/** The cached tokens of a usage under a vendor-specific name (DeepSeek, Moonshot, older answers of Mistral); undefined if absent. */
export function cachedElsewhere(usage: Fields): number | undefined {
  return number(usage.prompt_cache_hit_tokens) ?? number(usage.cached_tokens) ?? number(usage.num_cached_tokens);
}

/** All tokens of a usage, input and output; undefined if it counts none. */
export function countAllTokens(usage: unknown): number | undefined {
  if (typeof usage !== 'object' || usage === null) return undefined;
  return sumOf(readTokenCounts(usage as Fields, false));
}

/**
 * Whether a usage has the counts that a charge needs: those of input and output; the total may stand for the input's. One that
 * lacks them, or has them as text, is as good as none. So is one whose input is 0, as some servers report that do not count: no
 * prompt has no tokens.
 * @param isEmbedding there is no output
 */
export function hasCounts(usage: Fields, isEmbedding: boolean): boolean {
  const { input = 0 } = readTokenCounts(usage, false) ?? {};
  return input > 0 && (isEmbedding || typeof (usage.completion_tokens ?? usage.output_tokens) === 'number');
}

/**
 * Whether a usage counts what an answer of images or speech is made of, which always has tokens: servers that do not count report zeros,
 * or the input alone.
 */
export function hasOutput(usage: Fields): boolean {
  return (readTokenCounts(usage, false)?.output ?? 0) > 0;
}

/** Input and output together. */
export function sumOf(counts: TokenCounts | undefined): number | undefined {
  return counts && counts.input + counts.output;
}

/**
 * Tokens a vendor counts in addition to input and output: xAI its reasoning, Mistral the audio of a chat. OpenAI counts both as
 * parts of them. The total decides: an amount is additional if it fits into the total's excess.
 * @param excess the total minus input and output
 */
function countedBeside(excess: number, audio: number, reasoning: number): { audio: number; reasoning: number } {
  if (audio + reasoning <= excess) return { audio, reasoning };
  const isAudio = audio <= excess && (audio > reasoning || reasoning > excess);
  const isReasoning = !isAudio && reasoning <= excess;
  return { audio: isAudio ? audio : 0, reasoning: isReasoning ? reasoning : 0 };
}

function firstObject(...values: readonly unknown[]): Fields {
  return (values.find((value) => typeof value === 'object' && value !== null) ?? {}) as Fields;
}

/** A count: whole, never negative and never above `maxAmount`; undefined if not a number. */
function number(value: unknown): number | undefined {
  if (typeof value !== 'number' || !Number.isFinite(value)) return undefined;
  return Math.min(maxAmount, Math.max(0, Math.ceil(value)));
}

/** More tokens, images, characters or seconds than any answer has: a larger amount from a vendor is the vendor's error. */
export const maxAmount = 1_000_000_000;

/**
 * Whether a vendor's usage contains an impossible amount: a token count that is negative, fractional or above `maxAmount`, or a
 * length or quantity that is negative, above it or not a number.
 */
export function hasImpossibleAmount(
  usage: Readonly<Record<string, unknown>> | null,
  quantities: Readonly<Record<string, number | undefined>> = {},
): boolean {
  return !Object.values(quantities).every(isPossible) || (usage !== null && hasImpossibleField(usage));
}

function hasImpossibleField(fields: Readonly<Record<string, unknown>>): boolean {
  for (const name in fields) {
    const value = fields[name];
    if (typeof value === 'number') {
      const isCount = name.endsWith('tokens');
      if (isCount && !Number.isInteger(value)) return true;
      if ((isCount || name === 'seconds') && !isPossible(value)) return true;
      // Only details of counts (`prompt_tokens_details`): a vendor's own extras do not matter here.
    } else if (typeof value === 'object' && value !== null && name.includes('token')) {
      if (hasImpossibleField(value as Readonly<Record<string, unknown>>)) return true;
    }
  }
  return false;
}

function isPossible(amount: number | undefined): boolean {
  return amount === undefined || (amount >= 0 && amount <= maxAmount);
}
