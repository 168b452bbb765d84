import { z } from 'zod';

/**
 * The schema with a `validate` that is compiled, as by `z.compile`, when it is first called: to compile every schema would
 * be a tenth of what an api's start costs, and most processes see requests of few kinds. Only `validate` is compiled; what
 * parses, to say what is wrong, is the schema as it was.
 */
export function compiledOnUse<Schema extends z.ZodType>(schema: Schema): Schema {
  let compiled: Schema | undefined;
  const own = schema.clone();
  const validate: typeof own.validate = (data, parameters): data is z.input<Schema> => {
    compiled ??= z.compile(schema);
    return compiled.validate(data, parameters);
  };
  return Object.assign(own, { validate });
}
