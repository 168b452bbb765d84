import { z } from 'zod';

/** A setting that cannot be used; the message is one sentence for the operator. Start-up prints it and exits with 1. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

/** A value that is short and plain enough to be shown; anything else may be a secret that was put into the wrong setting. */
const showable = /^[\w.,:+-]{1,16}$/;

/** Reads settings of the environment. @throws ConfigError naming the setting and what it takes. */
export function parseSettings<Shape extends z.ZodRawShape>(
  schema: z.ZodObject<Shape>,
  given: Readonly<Record<string, unknown>>,
): z.output<z.ZodObject<Shape>> {
  const parsed = schema.safeParse(given);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0] as z.core.$ZodIssue;
  const name = String(issue.path[0]);
  throw new ConfigError(`${name} ${requirement(plainSchema(schema.shape[name]), issue, given[name])}.`);
}

/** The schema of a setting itself, without its default. */
function plainSchema(schema: unknown): unknown {
  const isWrapped = schema instanceof z.ZodDefault || schema instanceof z.ZodOptional;
  return isWrapped ? plainSchema(schema.def.innerType) : schema;
}

/** `must be a whole number from 0 to 65535, not "abc"`: what a setting takes, in words of ours instead of the schema's. */
function requirement(schema: unknown, issue: z.core.$ZodIssue, value: unknown): string {
  // Numbers and fixed words are no secrets; the values of all other settings stay out of sight.
  const not = typeof value === 'string' && showable.test(value) ? `, not "${value}"` : '';
  if (schema instanceof z.ZodNumber) {
    const kind = schema.isInt ? 'a whole number' : 'a number';
    return `must be ${kind} from ${schema.minValue} to ${schema.maxValue}${not}`;
  }
  if (schema instanceof z.ZodEnum) return `must be ${alternatives(schema.options.map(String))}${not}`;
  if (issue.message.startsWith('must ')) return issue.message;
  if (issue.message.startsWith('expected ')) return issue.message.replace('expected', 'must be');
  if (issue.code === 'invalid_format' && issue.format === 'url') {
    return 'must be an address that begins with http:// or https://';
  }
  if (issue.code === 'too_big') return `must have at most ${issue.maximum} characters`;
  return 'has a value that cannot be used';
}

/** `auto, on or off`. */
function alternatives(words: readonly string[]): string {
  return words.length < 2 ? words.join() : `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`;
}
