import { z } from 'zod';

type Fields = Record<string, unknown>;
type Schema = z.ZodType & { validate(value: unknown): boolean };

/**
 * A schema for objects of many kinds: `schemaOf` selects each object's own (compiled) schema. A union would try them all, and
 * could not tell which error is relevant.
 */
export function dispatched<T>(schemaOf: (value: Fields) => Schema): z.ZodType<T, T> {
  const schema = z.looseObject({}).check(({ value, issues }) => {
    const own = schemaOf(value);
    if (own.validate(value)) return;
    // Parsed only for a rejected request: finding the error costs a second, slower pass.
    for (const issue of own.safeParse(value).error?.issues ?? []) issues.push({ ...issue, input: value });
  });
  return schema as unknown as z.ZodType<T, T>;
}

/** Builds a lookup of schemas by type name. */
export function byTypeName(schemas: Readonly<Record<string, Schema>>): (type: unknown) => Schema | undefined {
  return (type) => (typeof type === 'string' && Object.hasOwn(schemas, type) ? schemas[type] : undefined);
}
