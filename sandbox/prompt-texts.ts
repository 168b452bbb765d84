import { splitTokens } from './tokens.ts';
import { invalidParameter } from './wire-error.ts';

/** One text from `input` or `prompt`. */
export interface PromptText {
  text: string;
  tokens: number;
}

/**
 * Parses the input of embeddings and legacy completions: a text, texts, one text as tokens, or texts as tokens. Tokens have
 * no text here, so the numbers themselves are used.
 * @throws WireError 400 naming the field or its item.
 */
export function readPromptTexts(value: unknown, name: string): PromptText[] {
  if (typeof value === 'string') return [fromText(value)];
  if (!Array.isArray(value)) throw invalidParameter(name, `'${name}' must be a string or an array.`);
  if (value.length === 0) throw invalidParameter(name, `'${name}' must not be an empty array.`);
  if (typeof value[0] === 'number') return [fromTokens(value, name)];
  return value.map((item, index) => {
    if (Array.isArray(item) && item.length > 0) return fromTokens(item, `${name}[${index}]`);
    if (typeof item === 'string') return fromText(item);
    throw invalidParameter(`${name}[${index}]`, `'${name}[${index}]' must be a string or an array of tokens.`);
  });
}

function fromText(text: string): PromptText {
  return { text, tokens: splitTokens(text).length };
}

function fromTokens(tokens: readonly unknown[], name: string): PromptText {
  if (tokens.every((token) => Number.isSafeInteger(token) && (token as number) >= 0)) {
    return { text: tokens.join(' '), tokens: tokens.length };
  }
  throw invalidParameter(name, `'${name}' must hold tokens only: whole numbers from 0.`);
}
