import { z } from 'zod';

type Fields = Record<string, unknown>;
type Schema = z.ZodType & { validate(value: unknown): boolean };

/**
 * The schema of objects of many kinds, where `schemaOf` tells each object's own (compiled) schema. A union would try them
 * all, and could not say which fault is the one that counts.
 */
export function dispatched<T>(schemaOf: (value: Fields) => Schema): z.ZodType<T, T> {
  const schema = z.looseObject({}).check(({ value, issues }) => {
    const own = schemaOf(value);
    if (own.validate(value)) return;
    // Found only for a request that is refused: which fault it is costs a second, slower look.
    for (const issue of own.safeParse(value).error?.issues ?? []) issues.push({ ...issue, input: value });
  });
  return schema as unknown as z.ZodType<T, T>;
}

/** Finds the schema of a type by its name. */
export function byTypeName(schemas: Readonly<Record<string, Schema>>): (type: unknown) => Schema | undefined {
  return (type) => (typeof type === 'string' && Object.hasOwn(schemas, type) ? schemas[type] : undefined);
}
