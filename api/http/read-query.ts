import type { ParsedUrlQuery } from 'node:querystring';
import type { Middleware } from 'koa';
import type { ApiError } from '../../shared/errors.ts';
import { invalidParameter } from '../pipeline/request-fields.ts';
import type { State } from '../state.ts';

/** The 400 for a parameter of a query. @param expected as in "expected a number" */
export function invalidQuery(param: string, expected: string): ApiError {
  return invalidParameter(param, `Invalid '${param}': expected ${expected}.`);
}

/**
 * Refuses parameters that a route does not have: a filter with a typing error would show, or export, all there is.
 * @throws ApiError 400 that names the parameter, and those that there are
 */
export function takesOnly(...names: readonly string[]): Middleware<State> {
  const known = new Set(names);
  const all = names.length === 0 ? 'this path takes none' : `this path takes ${names.join(', ')}`;
  return (ctx, next) => {
    const unknown = Object.keys(ctx.query).find((name) => !known.has(name));
    if (unknown === undefined) return next();
    const isName = /^[\w.[\]-]{1,64}$/.test(unknown);
    throw invalidParameter(
      isName ? unknown : 'query',
      `Unknown query parameter${isName ? ` '${unknown}'` : ''}: ${all}.`,
    );
  };
}

/** Reads a text parameter; undefined if missing or empty. @throws ApiError 400 if it is repeated or too long. */
export function readText(query: ParsedUrlQuery, param: string): string | undefined {
  const value = query[param];
  if (value === undefined || value === '') return undefined;
  if (typeof value !== 'string' || value.length > 1024)
    throw invalidQuery(param, 'one value, of at most 1024 characters');
  return value;
}

/** Reads a parameter with a fixed set of values. @throws ApiError 400 that names them. */
export function readWord<Word extends string>(
  query: ParsedUrlQuery,
  param: string,
  words: readonly Word[],
): Word | undefined {
  const value = readText(query, param);
  if (value === undefined || words.includes(value as Word)) return value as Word | undefined;
  throw invalidQuery(param, `one of ${words.map((word) => `"${word}"`).join(', ')}`);
}

/** The maximum time in a query: the year 9999. */
const lastTime = 253_402_300_800_000;

/** Reads a time in ms since 1970. @throws ApiError 400. */
export function readTime(query: ParsedUrlQuery, param: string): number | undefined {
  const value = readText(query, param);
  if (value === undefined) return undefined;
  if (/^\d{1,15}$/.test(value) && Number(value) <= lastTime) return Number(value);
  throw invalidQuery(param, 'milliseconds since 1970');
}
