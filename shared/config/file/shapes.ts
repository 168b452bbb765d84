import { z } from 'zod';

/** Building blocks of the file's schema. Each describes its requirement, which is the message of every mistake in it. */

/** A non-empty text. */
export function text(what = 'a text', max = 2048) {
  const message = `expected ${what}`;
  return z.string(message).min(1, message).max(max, message);
}

/** A text matching a pattern. */
export function pattern(form: RegExp, what: string) {
  return z.string(`expected ${what}`).regex(form, `expected ${what}`);
}

export function whole(min: number, max: number) {
  const message = `expected a whole number from ${min} to ${max}`;
  return z.int(message).min(min, message).max(max, message);
}

export function number(min: number, max: number) {
  const message = `expected a number from ${min} to ${max}`;
  return z.number(message).min(min, message).max(max, message);
}

/** `true` or `false`. */
export function flag() {
  return z.boolean('expected true or false');
}

export function oneOf<const Value extends string>(values: readonly Value[]) {
  return z.enum(values, `expected one of ${values.join(', ')}`);
}

/** A list of at least `min` items. */
export function list<Item extends z.ZodType>(item: Item, what: string, min = 1) {
  const message = `expected a list of ${what}`;
  return z.array(item, message).min(min, message);
}

/** A mapping of exactly these keys. */
export function mapping<Shape extends z.ZodRawShape>(shape: Shape) {
  return z.strictObject(shape, { error: ({ code }) => mappingText(code, Object.keys(shape)) });
}

function mappingText(code: string, keys: readonly string[]): string {
  return code === 'unrecognized_keys' ? `there is no such key here, only ${keys.join(', ')}` : 'expected a mapping';
}

/** A mapping with names chosen by the operator. */
export function named<Name extends z.ZodType<string, string>, Value extends z.ZodType>(name: Name, value: Value) {
  return z.record(name, value, 'expected a mapping');
}

type Camel<Name> = Name extends `${infer Head}_${infer Tail}` ? `${Head}${Capitalize<Camel<Tail>>}` : Name;

/** The same mapping with camel-case keys. */
export type CamelKeys<Given> = { [Key in keyof Given as Camel<Key>]: Given[Key] };

/** `{ context_window }` → `{ contextWindow }`; undefined values are left out. */
export function camelKeys<Given extends object>(given: Given): CamelKeys<Given> {
  return Object.fromEntries(
    Object.entries(given)
      .filter(([, value]) => value !== undefined)
      .map(([key, value]) => [key.replace(/_(\w)/g, (_match, letter: string) => letter.toUpperCase()), value]),
  ) as CamelKeys<Given>;
}
