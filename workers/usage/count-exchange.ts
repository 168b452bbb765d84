import { readUnsignedThought } from '../../shared/capabilities/signed-thought.ts';
import type { TextOrTokens } from '../../shared/capabilities/text-or-tokens.ts';
import { objectsOf } from '../../shared/capabilities/vendor-values.ts';
import { type AnswerTexts, readTexts, textsOf } from './answer-texts.ts';
import { countChat, countTexts } from './count-tokens.ts';
import { type Exchange, inputsOf, type TokenCounts, withPrompts } from './exchange.ts';

type Fields = Readonly<Record<string, unknown>>;

/**
 * How much of each text is tokenized, in characters: a client waits for the count, or a slot under a limit does. Text without
 * words takes a quarter of a second for this length, language a twentieth of that.
 */
const maxText = 50_000;
/** English, by OpenAI's own rule of thumb. */
const charactersPerToken = 4;

/** Estimates the tokens of an exchange, with the tokenizer of OpenAI's newer models. */
export function countExchange(exchange: Exchange): TokenCounts {
  const { endpoint, request, inputsSent, frames, length, largeLength } = exchange;
  const fields = JSON.parse(request) as Fields;
  const prompt = countPrompt(endpoint, fields, inputsSent);
  const texts = readTexts(frames);
  const { reasoning, others, areEvents } = texts;
  const read = lengthOf(frames);
  const share = length / Math.max(1, read);
  // A large event is a picture, or repeats its deltas.
  const large = areEvents ? 0 : largeLength / charactersPerToken;
  const reasoningTokens = Math.round(countTexts(reasoning, maxText) * share);
  const otherTokens = Math.round(countTexts(others, maxText) * share + large);
  const isEchoed = endpoint === 'completions' && fields.echo === true;
  const echo = isEchoed ? countEcho(fields, texts, Math.max(0, length - read) + largeLength) : 0;
  const counts = { prompt, completion: Math.max(0, reasoningTokens + otherTokens - echo), reasoning: reasoningTokens };
  return withPrompts(counts, exchange, fields, texts);
}

function lengthOf(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + text.length, 0);
}

function countPrompt(endpoint: string, fields: Fields, inputsSent: Exchange['inputsSent']): number {
  if (endpoint === 'embeddings') return countInputs(fields.input as TextOrTokens, inputsSent);
  if (endpoint === 'completions') return countInputs((fields.prompt ?? '') as TextOrTokens, inputsSent);
  return countChat(endpoint === 'responses' ? responseAsChat(fields) : fields, maxText);
}

function countInputs(all: TextOrTokens, sent: Exchange['inputsSent']): number {
  const inputs = inputsOf(all).filter((_, index) => sent?.has(index) ?? true);
  const texts = inputs.filter((input) => typeof input === 'string');
  const tokens = inputs.reduce((sum, input) => (typeof input === 'string' ? sum : sum + input.length), 0);
  return tokens + countTexts(texts, maxText);
}

/**
 * The tokens of a legacy completion's answer that repeat a prompt, as `echo` wants before each choice: they were read, not
 * generated. Of several prompts only those of choices in the frames count: of an answer that was cut some were never called.
 * @param unread characters of frames that are not among the texts: they may have the rest of an echo
 */
function countEcho({ prompt, n }: Fields, texts: AnswerTexts, unread: number): number {
  const prompts = inputsOf((prompt ?? '') as TextOrTokens);
  const choices = typeof n === 'number' ? n : 1;
  const echoes: string[] = [];
  let tokens = 0;
  for (let index = 0; index < prompts.length * choices; index++) {
    const text = texts.ofChoice(index);
    if (text === '' && prompts.length > 1) continue;
    const echo = prompts[Math.floor(index / choices)] as string | readonly number[];
    const longest = text.length + unread;
    if (typeof echo === 'string') echoes.push(echo.slice(0, longest));
    else tokens += Math.min(echo.length, longest);
  }
  return tokens + countTexts(echoes, maxText);
}

/** The items of a Responses request, in the fields where a chat has them. */
function responseAsChat({ input, instructions, tools, text }: Fields): Fields {
  const messages = objectsOf(input).map((item) => {
    const { content, output, summary, name, encrypted_content: encrypted } = item;
    const call = { function: { name, arguments: item.arguments ?? item.input ?? '' } };
    return {
      content: content ?? output,
      // A chat is sent what is carried of an item that has no other text.
      reasoning_content: textsOf(summary) || (textsOf(content) === '' ? readUnsignedThought(encrypted) : undefined),
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
