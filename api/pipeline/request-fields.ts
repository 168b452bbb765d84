import { z } from 'zod';
import { invalidRequest, unlessUnreadable } from './invalid-request.ts';

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
