import type { TextOrTokens } from '../../shared/capabilities/text-or-tokens.ts';
import type { AnswerTexts } from './answer-texts.ts';

/** A request and the part of its answer that is to be counted. */
export interface Exchange {
  /** Name of the endpoint that created the job, which determines the shape of its request. */
  readonly endpoint: string;
  /** The job's request as JSON text. */
  readonly request: string;
  /** The inputs of embeddings, or prompts of a legacy completion, that the vendor has been sent, by their indexes; undefined: all. */
  readonly inputsSent?: ReadonlySet<number> | undefined;
  /** JSON texts of the answer's frames, from the first on: chunks, events, or a whole body. */
  readonly frames: readonly string[];
  /** Characters of all frames except the large ones: those missing in `frames` are assumed to be like those in it. */
  readonly length: number;
  /** Characters of frames that are too large to be read: nearly all of a chat's is text. */
  readonly largeLength: number;
}

/** Tokens of an exchange; reasoning tokens are part of the completion's. */
export interface TokenCounts {
  readonly prompt: number;
  readonly completion: number;
  readonly reasoning: number;
  /** The parts of both sums that are of each prompt of a legacy completion, if it has several; without those that were not sent. */
  readonly byPrompt?: readonly Pick<TokenCounts, 'prompt' | 'completion'>[];
}

/**
 * Counts with the tokens of each prompt of a legacy completion that was sent, if it has several: divided by the lengths of the prompts
 * and of their choices. Without the tokenizer, which only the thread that counts loads.
 * @param texts of the answer; undefined: they cannot be read
 */
export function withPrompts(
  counts: TokenCounts,
  { endpoint, inputsSent }: Pick<Exchange, 'endpoint' | 'inputsSent'>,
  fields: Readonly<Record<string, unknown>>,
  texts: AnswerTexts | undefined,
): TokenCounts {
  if (endpoint !== 'completions' || inputsOf((fields.prompt ?? '') as TextOrTokens).length === 1) return counts;
  const all = [...inputsOf((fields.prompt ?? '') as TextOrTokens).entries()];
  const prompts = all.filter(([index]) => inputsSent?.has(index) ?? true);
  const choices = typeof fields.n === 'number' ? fields.n : 1;
  const written = prompts.map(([index, asked]) => {
    const echo = fields.echo === true ? asked.length : 0;
    let length = 0;
    for (let choice = 0; choice < choices; choice++) {
      length += Math.max(0, (texts?.ofChoice(index * choices + choice).length ?? 0) - echo);
    }
    return length;
  });
  const completions = divide(counts.completion, written);
  const read = divide(
    counts.prompt,
    prompts.map(([, { length }]) => length),
  );
  return { ...counts, byPrompt: read.map((prompt, index) => ({ prompt, completion: completions[index] as number })) };
}

/** Divides a sum into whole parts in the ratio of the lengths. */
function divide(sum: number, lengths: readonly number[]): number[] {
  const whole = lengths.reduce((all, length) => all + length, 0);
  let [seen, divided] = [0, 0];
  return lengths.map((length) => {
    seen += length;
    const before = divided;
    divided = whole === 0 ? sum : Math.round((sum * seen) / whole);
    return divided - before;
  });
}

/** What is to be embedded or completed, each by itself. */
export function inputsOf(given: TextOrTokens): readonly (string | readonly number[])[] {
  const isOne = typeof given === 'string' || typeof given[0] === 'number';
  return (isOne ? [given] : given) as readonly (string | readonly number[])[];
}
