import { z } from 'zod';

/** The parts of the file's schema. Each says what it takes: that is the message of every mistake in it. */

/** A text that says something. */
export function text(what = 'a text', longest = 2048) {
  const message = `expected ${what}`;
  return z.string(message).min(1, message).max(longest, message);
}

/** A text of a form. */
export function pattern(form: RegExp, what: string) {
  return z.string(`expected ${what}`).regex(form, `expected ${what}`);
}

export function whole(least: number, most: number) {
  const message = `expected a whole number from ${least} to ${most}`;
  return z.int(message).min(least, message).max(most, message);
}

export function number(least: number, most: number) {
  const message = `expected a number from ${least} to ${most}`;
  return z.number(message).min(least, message).max(most, message);
}

/** `true` or `false`. */
export function flag() {
  return z.boolean('expected true or false');
}

export function oneOf<const Value extends string>(values: readonly Value[]) {
  return z.enum(values, `expected one of ${values.join(', ')}`);
}

/** A list of at least one item, unless told otherwise. */
export function list<Item extends z.ZodType>(item: Item, what: string, least = 1) {
  const message = `expected a list of ${what}`;
  return z.array(item, message).min(least, message);
}

/** A mapping of these keys and no others. */
export function mapping<Shape extends z.ZodRawShape>(shape: Shape) {
  return z.strictObject(shape, { error: ({ code }) => mappingText(code, Object.keys(shape)) });
}

function mappingText(code: string, keys: readonly string[]): string {
  return code === 'unrecognized_keys' ? `there is no such key here, only ${keys.join(', ')}` : 'expected a mapping';
}

/** A mapping of names that the operator chooses. */
export function named<Name extends z.ZodType<string, string>, Value extends z.ZodType>(name: Name, value: Value) {
  return z.record(name, value, 'expected a mapping');
}

type Camel<Name> = Name extends `${infer Head}_${infer Tail}` ? `${Head}${Capitalize<Camel<Tail>>}` : Name;

/** The same mapping, its keys written as in the code. */
export type CamelKeys<Given> = { [Key in keyof Given as Camel<Key>]: Given[Key] };

/** `{ context_window }` → `{ contextWindow }`; keys without a value are left out. */
export function camelKeys<Given extends object>(given: Given): CamelKeys<Given> {
  return Object.fromEntries(
    Object.entries(given)
      .filter(([, value]) => value !== undefined)
      .map(([key, value]) => [key.replace(/_(\w)/g, (_match, letter: string) => letter.toUpperCase()), value]),
  ) as CamelKeys<Given>;
}
