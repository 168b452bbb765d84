import type { BrokenRule } from './chat.ts';

/** Input of embeddings and legacy completions: a text, texts, one text as tokens, or texts as tokens. */
export type TextOrTokens = string | string[] | number[] | number[][];

/**
 * OpenAI: "any array must be 2048 dimensions or less". Its service counts texts only: one text as tokens may be as long as the model
 * allows, as in the 8,191 tokens of https://cookbook.openai.com/examples/embedding_long_inputs.
 */
const maxList = 2048;

interface TextRules {
  /** The field's name, for the path in errors. */
  readonly name: string;
  /** Whether a text may be empty. */
  readonly emptyTexts: boolean;
}

/**
 * The error in a list that should be texts, tokens, or lists of tokens, or undefined. Hand-written, because the error names the
 * exact item, and the lists run to millions of numbers.
 */
export function brokenTextRule(value: string | readonly unknown[], rules: TextRules): BrokenRule | undefined {
  const path = [rules.name];
  if (typeof value === 'string') return brokenText(value, path, rules);
  if (value.length === 0) return { path, message: `${rules.name} cannot be an empty array` };
  if (value.length > maxList && typeof value[0] !== 'number') {
    return { path, message: `array too long. Expected at most ${maxList} items, but got ${value.length}` };
  }
  const brokenItem = itemRule(value[0], rules);
  for (let index = 0; index < value.length; index++) {
    const broken = brokenItem(value[index], [rules.name, index]);
    if (broken) return broken;
  }
  return undefined;
}

type ItemRule = (item: unknown, path: (string | number)[]) => BrokenRule | undefined;

/** The rule for all items: they must be of the same kind as the first. */
function itemRule(first: unknown, rules: TextRules): ItemRule {
  if (typeof first === 'number') return brokenToken;
  if (Array.isArray(first)) return (item, path) => brokenTokens(item, path);
  return (item, path) => brokenText(item, path, rules);
}

function brokenText(text: unknown, path: (string | number)[], rules: TextRules): BrokenRule | undefined {
  if (typeof text !== 'string') return { path, message: 'expected a string, or tokens everywhere' };
  if (text === '' && !rules.emptyTexts) return { path, message: `${rules.name} cannot be an empty string` };
  return undefined;
}

function brokenTokens(tokens: unknown, path: (string | number)[]): BrokenRule | undefined {
  if (!Array.isArray(tokens)) return { path, message: 'expected an array of tokens' };
  if (tokens.length === 0) return { path, message: 'an array of tokens cannot be empty' };
  for (let index = 0; index < tokens.length; index++) {
    if (!isToken(tokens[index])) return brokenToken(tokens[index], [...path, index]);
  }
  return undefined;
}

function brokenToken(token: unknown, path: (string | number)[]): BrokenRule | undefined {
  return isToken(token) ? undefined : { path, message: 'a token is a whole number, 0 or more' };
}

function isToken(token: unknown): boolean {
  return Number.isSafeInteger(token) && (token as number) >= 0;
}
