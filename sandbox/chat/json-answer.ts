import { exampleInstance, SchemaError } from '../json-schema/instance.ts';
import { isObject } from '../json-value.ts';
import { textStart } from '../tokens.ts';
import { invalidParameter } from '../wire-error.ts';
import { type ChatMessage, lastUserText, messageText } from './chat-message.ts';
import { exactText } from './text-answer.ts';

/**
 * An instance of the schema in `response_format`, as JSON text.
 * @throws WireError 400 if the schema is invalid or has no instance.
 */
export function answerSchema(schema: unknown): string {
  try {
    return JSON.stringify(exampleInstance(schema));
  } catch (error) {
    if (!(error instanceof SchemaError)) throw error;
    throw invalidParameter('response_format', `Invalid schema for response_format: ${error.message}`);
  }
}

/** An object with the keys quoted in the prompt; an object dictated verbatim by the user is returned unchanged. */
export function answerObject(messages: readonly ChatMessage[]): string {
  const text = lastUserText(messages);
  const dictated = exactText(text);
  if (dictated !== undefined && isJsonObject(dictated)) return dictated;
  const prompt = messages
    .filter((message) => message.role !== 'assistant')
    .map(messageText)
    .join('\n');
  const keys = quotedKeys(prompt);
  if (keys.length === 0) return JSON.stringify({ answer: textStart(text, 80) });
  return JSON.stringify(Object.fromEntries(keys.map((key) => [key, `the ${key}`])));
}

function isJsonObject(text: string): boolean {
  try {
    return isObject(JSON.parse(text));
  } catch {
    return false;
  }
}

/** Single quotes count only around a plain word: most of them are apostrophes. */
const quoted = /"([^"\n]{1,64})"|`([^`\n]{1,64})`|“([^”\n]{1,64})”|(?<![\p{L}\p{N}])'([\p{L}\p{N}_-]{1,64})'/gu;

function quotedKeys(prompt: string): string[] {
  const keys = Array.from(prompt.matchAll(quoted), (match) => match.slice(1).find((key) => key !== undefined) ?? '');
  return [...new Set(keys)].slice(0, 100);
}
