import { sha256 } from '../admission/preferences.ts';
import type { Context } from '../state.ts';
import type { Endpoint } from './endpoint.ts';
import type { ParsedRequest } from './parsed-request.ts';
import { textOf } from './request-text.ts';

/** Longer requests (in characters) are not compared: each is parsed and written once more, on the event loop. */
const maxCompared = 262_144;
/** Bytes of such a body: UTF-8 has three of a UTF-16 code unit at most. */
const maxComparedBytes = 3 * maxCompared;

/** Texts of JSON, and numbers between them. */
const texts = /"[^"\\]*(?:\\.[^"\\]*)*"/g;
const numbers = /-?\d[\d.]*(?:[eE][+-]?\d+)?/g;
const textsAndNumbers = new RegExp(`${texts.source}|${numbers.source}`, 'g');
/** A number of so few characters, without an exponent, is parsed as exactly as it is written. */
const maxExact = 15;
/** A longer one is taken for one that is not. */
const maxLength = 40;

/**
 * A name that identical requests have in common: of the same account, endpoint and model, with the same body but for whether the
 * answer is streamed. Fields in another order make no difference, and neither does anything that only the reply depends on.
 * Undefined for requests that are not compared.
 * @param terms whatever else must be the same
 */
export function requestName(
  { state }: { readonly state: Pick<Context['state'], 'caller'> },
  { name, capability }: Pick<Endpoint, 'name' | 'capability'>,
  { model, request, store, background }: ParsedRequest,
  ...terms: readonly string[]
): string | undefined {
  // Responses are resources: each has its own id, which its caller may continue and delete.
  if ((capability !== 'chat' && capability !== 'embedding') || store !== undefined || background) return undefined;
  if (request.length > maxCompared) return undefined;
  const text = textOf(request);
  const exact = withExactNumbers(text);
  const { stream_options: _, ...body } = JSON.parse(exact) as Record<string, unknown>;
  // A key that leaves out unsupported fields may get another answer than one for which they are an error.
  const { account, unsupportedParameters = '' } = state.caller;
  // As JSON: one may end where another begins, and the hash does not tell lone surrogates apart.
  const form = exact === text ? [] : ['exact'];
  const about = JSON.stringify([account, name, model, unsupportedParameters, ...terms, ...form]);
  return sha256(about + canonicalJson(body));
}

/** Whether a request may have a name, by its endpoint and by the size of its body, if it is known. */
export function mayHaveName({ capability }: Pick<Endpoint, 'capability'>, bytes: number | undefined): boolean {
  return (capability === 'chat' || capability === 'embedding') && bytes !== undefined && bytes <= maxComparedBytes;
}

/**
 * JSON in which numbers that parsing would change are texts that begin with a null character: vendors may get them as they were
 * written, and different ones would become equal. Nearly every request stays as it is.
 */
function withExactNumbers(text: string): string {
  if (!text.replace(texts, '').match(numbers)?.some(isRounded)) return text;
  return text.replace(textsAndNumbers, (token) => {
    if (token.startsWith('"')) return token.startsWith('"\\u0000') ? `"\\u0000${token.slice(1)}` : token;
    return isRounded(token) ? `"\\u0000${token}"` : token;
  });
}

function isRounded(number: string): boolean {
  if (number.length <= maxExact && !/e/i.test(number)) return false;
  return number.length > maxLength || significantDigits(number) !== significantDigits(String(Number(number)));
}

/** Its digits without zeros at the ends, the sign, the point and the exponent. */
function significantDigits(number: string): string {
  return number
    .replace(/e.*/i, '')
    .replace(/[-.]/g, '')
    .replace(/^0+|0+$/g, '');
}

/** JSON text whose objects have their fields in order. */
function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_, each: unknown) =>
    typeof each === 'object' && each !== null && !Array.isArray(each)
      ? Object.fromEntries(Object.entries(each).sort(([one], [other]) => (one < other ? -1 : 1)))
      : each,
  );
}
