import { z } from 'zod';
import { storableText } from '../../shared/database/select-rows.ts';
import { ApiError } from '../../shared/errors.ts';

/**
 * Validates a request's fields by its schema; the only code that decides the meaning of null. Null on an optional or unknown
 * field means that the field is missing. A required field refuses null. A nested field that its schema declares nullable, in
 * a message or a tool, keeps it.
 * @param input parsed JSON; its nulls are removed in place.
 * @throws ApiError 400 for what the schema refuses.
 */
export function readRequestFields<Schema extends z.ZodType>(schema: Schema, input: unknown): z.infer<Schema> {
  leaveOutNulls(schema, input);
  if (!unlessUnreadable(() => schema.validate(input))) throw invalidRequest(schema, input);
  return input as z.infer<Schema>;
}

/** Removes the nulls of optional fields from a value. */
export function leaveOutNulls(schema: z.ZodType, value: unknown): void {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return;
  const fields = value as Fields;
  const { required, clean } = ruleOf(schema);
  for (const name of Object.keys(fields)) if (fields[name] === null && !required.has(name)) delete fields[name];
  clean?.(fields);
}

type Fields = Record<string, unknown>;
/** Removes nulls within a value; undefined if the schema allows none. */
type Clean = ((value: unknown) => void) | undefined;

interface RequestRule {
  readonly required: ReadonlySet<string>;
  readonly clean: Clean;
}

/** Each schema is analyzed once. */
const rules = new WeakMap<z.ZodType, RequestRule>();

function ruleOf(schema: z.ZodType): RequestRule {
  let rule = rules.get(schema);
  if (rule === undefined) {
    const shape = schema instanceof z.ZodObject ? (schema.shape as Shape) : {};
    const required = Object.keys(shape).filter((name) => !isOptional(shape[name] as z.ZodType));
    rule = { required: new Set(required), clean: cleanOf(schema) };
    rules.set(schema, rule);
  }
  return rule;
}

type Shape = Readonly<Record<string, z.ZodType>>;

function cleanOf(schema: z.ZodType): Clean {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable) return cleanOf(schema.unwrap() as z.ZodType);
  if (schema instanceof z.ZodArray) return cleanItems(cleanOf(schema.element as z.ZodType));
  if (schema instanceof z.ZodDiscriminatedUnion) return cleanChosen(schema);
  if (schema instanceof z.ZodUnion) return cleanKinds(schema.options as z.ZodType[]);
  return schema instanceof z.ZodObject ? cleanObject(schema.shape as Shape) : undefined;
}

function cleanItems(clean: Clean): Clean {
  if (clean === undefined) return undefined;
  return (value) => {
    if (Array.isArray(value)) for (const item of value) clean(item);
  };
}

function cleanObject(shape: Shape): Clean {
  const optional = Object.keys(shape).filter((name) => isOptional(shape[name] as z.ZodType) && !mayBeNull(shape[name]));
  const inner = Object.entries(shape).flatMap(([name, field]) => {
    const clean = cleanOf(field);
    return clean === undefined ? [] : [{ name, clean }];
  });
  if (optional.length === 0 && inner.length === 0) return undefined;
  return (value) => {
    if (!isFields(value)) return;
    for (const name of optional) if (value[name] === null) delete value[name];
    for (const { name, clean } of inner) if (value[name] != null) clean(value[name]);
  };
}

/** Cleans by the object of a union that the discriminator selects. */
function cleanChosen(schema: z.ZodDiscriminatedUnion): Clean {
  const { discriminator } = schema.def;
  const cleans = new Map<unknown, Clean>();
  for (const option of schema.options as z.ZodType[]) {
    if (!(option instanceof z.ZodObject)) continue;
    const word = (option.shape as Shape)[discriminator];
    for (const value of word instanceof z.ZodLiteral ? word.values : []) cleans.set(value, cleanOf(option));
  }
  if (![...cleans.values()].some((clean) => clean !== undefined)) return undefined;
  return (value) => {
    if (isFields(value)) cleans.get(value[discriminator])?.(value);
  };
}

/** Without a discriminator, each kind of value (text, list, object) is cleaned by the first option of that kind. */
function cleanKinds(options: readonly z.ZodType[]): Clean {
  const list = cleanOf(options.find((option) => option instanceof z.ZodArray) ?? z.never());
  const object = cleanOf(options.find((option) => !(option instanceof z.ZodArray) && cleanOf(option)) ?? z.never());
  if (list === undefined && object === undefined) return undefined;
  return (value) => {
    if (Array.isArray(value)) list?.(value);
    else object?.(value);
  };
}

function isOptional(schema: z.ZodType): boolean {
  return schema._zod.optin === 'optional';
}

/** Whether the schema itself declares the field nullable. */
function mayBeNull(schema: unknown): boolean {
  if (schema instanceof z.ZodNullable) return true;
  return schema instanceof z.ZodOptional && mayBeNull(schema.unwrap());
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** OpenAI's limits of tags: pairs, and characters of a name and of a value. */
const maxPairs = 16;
const nameCharacters = 64;
const valueCharacters = 512;

/**
 * Returns a request's `metadata` as tags, by which its caller finds it in the usage: JSON text of an object of strings.
 * Omitted if missing or outside of OpenAI's limits: whether that is an error is up to the endpoint.
 */
export function requestTags(metadata: unknown): { readonly metadata?: string } {
  if (typeof metadata !== 'object' || metadata === null || Array.isArray(metadata)) return {};
  const pairs = Object.entries(metadata);
  const isTag = ([name, value]: [string, unknown]): boolean =>
    name.length <= nameCharacters && typeof value === 'string' && value.length <= valueCharacters;
  if (pairs.length === 0 || pairs.length > maxPairs || !pairs.every(isTag)) return {};
  return { metadata: JSON.stringify(Object.fromEntries(pairs.map((pair) => pair.map(storableText)))) };
}

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
  if (issue.code === 'unrecognized_keys') return unknownField(path, issue.keys);
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

/** Names the first of them, unless it is no name that a caller could have meant. */
function unknownField(path: Path, [key = '']: readonly string[]): Fault {
  if (formatPath([key]) === '') return { path, fault: () => 'The request has a parameter that is unknown.' };
  return { path: [...path, key], fault: (param) => `Unknown parameter: '${param}'.` };
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
  ...{ string: 'a string', number: 'a number', int: 'an integer', boolean: 'a boolean' },
  ...{ object: 'an object', record: 'an object', array: 'an array', null: 'null' },
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

/** Reads `Idempotency-Key`. @throws ApiError 400. */
export function readIdempotencyKey(value: string | string[] | undefined): string | undefined {
  if (value === undefined) return undefined;
  if (typeof value !== 'string' || !/^[\x20-\x7e]{1,255}$/.test(value)) {
    const message = 'Invalid header Idempotency-Key: expected 1 to 255 printable ASCII characters.';
    throw invalidParameter('Idempotency-Key', message);
  }
  return value;
}

/** The error for an idempotency key that was used for a request with another body. */
export function keyReused(): ApiError {
  return new ApiError('idempotency_key_reused', 'This Idempotency-Key was used with a different request body.', {
    param: 'Idempotency-Key',
  });
}
