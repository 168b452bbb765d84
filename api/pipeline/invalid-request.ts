import type { z } from 'zod';
import { ApiError } from '../../shared/errors.ts';

type Issue = z.core.$ZodIssue;
type Path = readonly PropertyKey[];

// Missing in zod's public type of parse options. Stops at the first of possibly a hundred thousand faults.
const firstFault: z.core.ParseContextInternal<Issue> = { abortEarly: true };

/**
 * The 400 for a request that its schema refuses: the first fault, its field in `param`, worded like OpenAI's. Values of the
 * caller are not repeated (they may be part of a prompt), except numbers.
 */
export function invalidRequest(schema: z.ZodType, request: unknown): ApiError {
  const issue = unlessUnreadable(() => schema.safeParse(request, firstFault))?.error?.issues[0];
  if (!issue) return new ApiError('invalid_request_error', 'The request is not valid.');
  const { path, fault } = describe(issue, request);
  const param = formatPath(path);
  return new ApiError('invalid_request_error', fault(param || 'request'), { param: param || null });
}

/**
 * Returns a schema's result, or undefined if its checks cannot read the value. They read the `length` of any value that has
 * one, and throw a TypeError if that is an object which defines its own conversion to a number.
 */
export function unlessUnreadable<Reply>(check: () => Reply): Reply | undefined {
  try {
    return check();
  } catch (error) {
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}

/** The 400 for a parameter whose fault no schema finds. @param message for the caller */
export function invalidParameter(param: string, message: string): ApiError {
  return new ApiError('invalid_request_error', message, { param });
}

interface Fault {
  readonly path: Path;
  readonly fault: (param: string) => string;
}

/** Formats a path like OpenAI: `messages[0].content`. It ends at a key that the caller chose freely. */
function formatPath(path: Path): string {
  let text = '';
  for (const step of path) {
    if (typeof step === 'number') text += `[${step}]`;
    else if (typeof step === 'string' && /^\w{1,64}$/.test(step)) text += text === '' ? step : `.${step}`;
    else break;
  }
  return text;
}

/** Describes the most specific issue: of a union's branches, the one that got furthest into the value. */
function describe(issue: Issue, value: unknown): Fault {
  const { path } = issue;
  const found = valueAt(value, path);
  if (found === undefined && issue.code !== 'custom') {
    return { path, fault: (param) => `Missing required parameter: '${param}'.` };
  }
  if (issue.code === 'invalid_union' && issue.errors.length > 0) {
    const firsts = issue.errors.flatMap((branch) => branch.slice(0, 1));
    const types = firsts.filter(isOfWrongType);
    if (types.length === firsts.length) return { path, fault: wrongType(types, found) };
    const furthest = firsts
      .filter((first) => !isOfWrongType(first))
      .reduce((best, next) => (next.path.length > best.path.length ? next : best));
    const inner = describe(furthest, found);
    return { path: [...path, ...inner.path], fault: inner.fault };
  }
  if (issue.code === 'invalid_type') return { path, fault: wrongType([issue], found) };
  return { path, fault: wrongValue(issue, found) };
}

type TypeIssue = z.core.$ZodIssueInvalidType;

function isOfWrongType(issue: Issue): issue is TypeIssue {
  return issue.code === 'invalid_type' && issue.path.length === 0;
}

function wrongType(issues: readonly TypeIssue[], found: unknown): Fault['fault'] {
  const expected = issues.map(({ expected }) => typeNames[expected] ?? expected).join(' or ');
  return (param) => `Invalid type for '${param}': expected ${expected}, but got ${typeOf(found)} instead.`;
}

const typeNames: Record<string, string> = {
  string: 'a string',
  number: 'a number',
  int: 'an integer',
  boolean: 'a boolean',
  object: 'an object',
  record: 'an object',
  array: 'an array',
  null: 'null',
};

function typeOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  if (typeof value === 'number') return Number.isInteger(value) ? 'an integer' : 'a decimal number';
  return typeNames[typeof value] ?? typeof value;
}

function wrongValue(issue: Issue, found: unknown): Fault['fault'] {
  switch (issue.code) {
    case 'too_small':
      return outOfRange('minimum', '>=', issue.minimum, found);
    case 'too_big':
      return outOfRange('maximum', '<=', issue.maximum, found);
    case 'invalid_value':
      return unsupported(issue.values);
    case 'invalid_union':
      return unsupported('options' in issue && Array.isArray(issue.options) ? issue.options : []);
    case 'not_multiple_of':
      return (param) => `Invalid type for '${param}': expected an integer, but got ${typeOf(found)} instead.`;
    case 'invalid_key':
      return (param) => `Invalid key in '${param}': ${issue.issues[0]?.message ?? 'not allowed'}.`;
    default:
      return (param) => `Invalid '${param}': ${issue.message}.`;
  }
}

function unsupported(values: readonly unknown[]): Fault['fault'] {
  const list = values.map((value) => `'${String(value)}'`).join(', ');
  return (param) => `Invalid value for '${param}'. Supported values are: ${list}.`;
}

function outOfRange(edge: string, sign: string, limit: number | bigint, found: unknown): Fault['fault'] {
  if (typeof found === 'string' || Array.isArray(found)) {
    const kind = typeof found === 'string' ? 'a string' : 'an array';
    return (param) =>
      `Invalid '${param}': expected ${kind} with ${edge} length ${limit}, but got length ${found.length}.`;
  }
  return (param) => `Invalid '${param}': expected a value ${sign} ${limit}, but got ${Number(found)} instead.`;
}

function valueAt(value: unknown, path: Path): unknown {
  let at = value;
  for (const step of path) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, step)) return undefined;
    at = (at as Record<PropertyKey, unknown>)[step];
  }
  return at;
}
