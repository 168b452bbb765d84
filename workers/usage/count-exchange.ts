import type { TextOrTokens } from '../../shared/capabilities/text-or-tokens.ts';
import { objectsOf } from '../../shared/capabilities/vendor-values.ts';
import { readTexts, textsOf } from './answer-texts.ts';
import { countChat, countTexts } from './count-tokens.ts';

type Fields = Readonly<Record<string, unknown>>;

/** A request and the part of its answer that is to be counted. */
export interface Exchange {
  /** Name of the endpoint that created the job, which determines the shape of its request. */
  readonly endpoint: string;
  /** The job's request as JSON text. */
  readonly request: string;
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
}

/**
 * How much of each text is tokenized, in characters: a client waits for the count, or a slot under a limit does. Text without
 * words takes a quarter of a second for this length, language a twentieth of that.
 */
const maxText = 50_000;
/** English, by OpenAI's own rule of thumb. */
const charactersPerToken = 4;

/** Estimates the tokens of an exchange, with the tokenizer of OpenAI's newer models. */
export function countExchange({ endpoint, request, frames, length, largeLength }: Exchange): TokenCounts {
  const fields = JSON.parse(request) as Fields;
  const prompt = countPrompt(endpoint, fields);
  const { reasoning, others, areEvents } = readTexts(frames);
  const share = length / Math.max(1, lengthOf(frames));
  // A large event is a picture, or repeats its deltas.
  const large = areEvents ? 0 : largeLength / charactersPerToken;
  const reasoningTokens = Math.round(countTexts(reasoning, maxText) * share);
  const otherTokens = Math.round(countTexts(others, maxText) * share + large);
  return {
    prompt,
    completion: Math.max(0, reasoningTokens + otherTokens - countEcho(fields, prompt)),
    reasoning: reasoningTokens,
  };
}

function lengthOf(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + text.length, 0);
}

function countPrompt(endpoint: string, fields: Fields): number {
  if (endpoint === 'embeddings') return countInputs(fields.input as TextOrTokens);
  if (endpoint === 'completions') return countInputs((fields.prompt ?? '') as TextOrTokens);
  return countChat(endpoint === 'responses' ? responseAsChat(fields) : fields, maxText);
}

function countInputs(inputs: TextOrTokens): number {
  if (typeof inputs === 'string') return countTexts([inputs], maxText);
  const texts = inputs.filter((input) => typeof input === 'string');
  const tokens = inputs.reduce((sum: number, input) => {
    if (typeof input === 'number') return sum + 1;
    return Array.isArray(input) ? sum + input.length : sum;
  }, 0);
  return tokens + countTexts(texts, maxText);
}

/** A legacy completion with `echo` repeats its prompt before each choice: those tokens were read, not generated. */
function countEcho({ echo, n }: Fields, prompt: number): number {
  return echo === true ? prompt * (typeof n === 'number' ? n : 1) : 0;
}

/** The items of a Responses request, in the fields where a chat has them. */
function responseAsChat({ input, instructions, tools, text }: Fields): Fields {
  const messages = objectsOf(input).map((item) => {
    const { content, output, summary, name } = item;
    const call = { function: { name, arguments: item.arguments ?? item.input ?? '' } };
    return {
      content: content ?? output,
      reasoning_content: textsOf(summary),
      ...(typeof name === 'string' && { tool_calls: [call] }),
    };
  });
  const { schema } = ((text as Fields | null | undefined)?.format ?? {}) as Fields;
  return {
    messages: typeof instructions === 'string' ? [{ content: instructions }, ...messages] : messages,
    ...(tools != null && { tools }),
    ...(schema != null && { response_format: { json_schema: schema } }),
  };
}
