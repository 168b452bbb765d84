import type { z } from 'zod';

/** A setting that cannot be used; the message is one sentence for the operator. Start-up prints it and exits with 1. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

/** Reads settings of the environment. @throws ConfigError naming the setting and what it takes. */
export function parseSettings<Schema extends z.ZodType>(
  schema: Schema,
  given: Readonly<Record<string, unknown>>,
): z.infer<Schema> {
  const parsed = schema.safeParse(given);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  // The value itself is not shown: it may be a secret.
  throw new ConfigError(`The setting ${issue?.path.join('.')} cannot be used: ${issue?.message}.`);
}
