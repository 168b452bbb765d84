import { sha256 } from '../admission/preferences.ts';
import type { Context } from '../state.ts';
import type { Endpoint } from './endpoint.ts';
import type { ParsedRequest } from './parsed-request.ts';
import { textOf } from './request-text.ts';

/** Longer requests (in characters) are not compared: each is parsed and written once more, on the event loop. */
const maxCompared = 262_144;

/** Digits of whole numbers that may be more than a parsed number keeps. */
const longNumbers = /\d{16,}/g;
/** More digits are more than any number has. */
const maxDigits = 300;

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
  const { stream_options: _, ...body } = JSON.parse(text) as Record<string, unknown>;
  // A key that leaves out unsupported fields may get another answer than one for which they are an error.
  const { account, unsupportedParameters = '' } = state.caller;
  // As JSON: one may end where another begins, and the hash does not tell lone surrogates apart.
  const about = JSON.stringify([account, name, model, unsupportedParameters, ...terms]);
  return sha256(about + canonicalJson(body) + roundedNumbers(text));
}

/** Whole numbers that parsing rounds, as they were written: vendors get them so, and two of them may become equal. */
function roundedNumbers(text: string): string {
  const isRounded = (digits: string): boolean => digits.length > maxDigits || BigInt(digits) !== BigInt(Number(digits));
  return text.match(longNumbers)?.filter(isRounded).join() ?? '';
}

/** JSON text whose objects have their fields in order. */
function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_, each: unknown) =>
    typeof each === 'object' && each !== null && !Array.isArray(each)
      ? Object.fromEntries(Object.entries(each).sort(([one], [other]) => (one < other ? -1 : 1)))
      : each,
  );
}
