import { z } from 'zod';

/** An unusable setting; the message is one sentence for the operator. Start-up prints it and exits with 1. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

/** A value short and plain enough to be shown; anything else may be a secret put into the wrong setting. */
const showable = /^[\w.,:+-]{1,16}$/;

/**
 * Parses settings of the environment.
 * @throws ConfigError naming the setting and its requirement.
 */
export function parseSettings<Shape extends z.ZodRawShape>(
  schema: z.ZodObject<Shape>,
  given: Readonly<Record<string, unknown>>,
): z.output<z.ZodObject<Shape>> {
  // To compile what runs once takes longer than to run it.
  const parsed = schema.safeParse(given, { jitless: true });
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0] as z.core.$ZodIssue;
  const name = String(issue.path[0]);
  throw new ConfigError(`${name} ${requirement(plainSchema(schema.shape[name]), issue, given[name])}.`);
}

/** How a variable of the environment is written where something replaces it. Nothing has replaced one that is found here. */
const reference = /\$\{[A-Z_][A-Z0-9_]*\}|\$\([A-Z_][A-Z0-9_]*\)/;

/**
 * Refuses settings that are not what was meant: of spaces only, which would count as 0 or as a name, and what Docker's `--env-file` and
 * Kubernetes pass on as it was written, quotes and names of variables.
 * @throws ConfigError naming the first one.
 */
export function refuseUnmeant(names: readonly string[], given: Readonly<Record<string, unknown>>): void {
  for (const name of names) {
    const value = given[name];
    const complaint = typeof value === 'string' ? complaintOf(value) : undefined;
    if (complaint !== undefined) throw new ConfigError(`${name} ${complaint}`);
  }
}

function complaintOf(value: string): string | undefined {
  const text = value.trim();
  if (text === '') return 'consists of spaces only: give it a value, or leave it empty.';
  if (/^(["']).*\1$/s.test(text)) return 'stands in quotes, which would be a part of it: leave them out.';
  const [variable] = reference.exec(text) ?? [];
  return variable && `contains ${variable}, which nothing has replaced: write the value of that variable.`;
}

/** A secret that callers send in a header: with any other character all of their requests would be refused. */
export function headerSecret(min: number) {
  return z
    .string()
    .min(min, `must have at least ${min} characters`)
    .regex(/^[\x21-\x7e]*$/, 'must consist of letters, digits and signs of ASCII, without spaces');
}

/** A setting's own schema, without its default. */
function plainSchema(schema: unknown): unknown {
  const isWrapped = schema instanceof z.ZodDefault || schema instanceof z.ZodOptional;
  return isWrapped ? plainSchema(schema.def.innerType) : schema;
}

/** `must be a whole number from 0 to 65535, not "abc"`: the requirement, in our wording instead of the schema's. */
function requirement(schema: unknown, issue: z.core.$ZodIssue, value: unknown): string {
  // Numbers and enum values are not secret; the values of all other settings are never shown.
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
function alternatives(names: readonly string[]): string {
  return names.length < 2 ? names.join() : `${names.slice(0, -1).join(', ')} or ${names.at(-1)}`;
}
