import { z } from 'zod';

/**
 * The schema with a `validate` that is compiled, as by `z.compile`, on its first call: compiling every schema would be a tenth
 * of an api process's start-up cost, and most processes see few kinds of requests. Only `validate` is compiled; parsing, which
 * explains errors, uses the original schema.
 */
export function compiledOnUse<Schema extends z.ZodType>(schema: Schema): Schema {
  const own = schema.clone();
  const validate: typeof own.validate = (data, parameters): data is z.input<Schema> => {
    const compiled = z.compile(schema);
    Object.assign(own, { validate: compiled.validate.bind(compiled) });
    return compiled.validate(data, parameters);
  };
  return Object.assign(own, { validate });
}
