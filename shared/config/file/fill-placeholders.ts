import type { Mistake } from './mistake.ts';

/** The fields of a vendor that may contain `${NAME}`. */
const filledKeys = ['base_url', 'api_key', 'api_keys'];

/** `${NAME}`, or the start of a malformed one. */
const placeholder = /\$\{(?:([A-Za-z_][A-Za-z0-9_]*)\})?/g;

/** How other gateways and shells write a variable: taken for a key, it would be sent to the vendor as it stands. */
const foreignPlaceholder = /^(?:os\.environ\/|\$|env:)([A-Z_][A-Z0-9_]*)$/;

/** Deeper than any field, so that a list that contains itself ends. */
const maxDepth = 12;

/**
 * Replaces `${NAME}` in addresses and keys of vendors with the environment's values. Anywhere else it is a mistake, and so is another
 * notation: they would be names and keys as they stand.
 */
export function fillPlaceholders(
  value: unknown,
  environment: Readonly<Record<string, unknown>>,
): { readonly value: unknown; readonly mistakes: readonly Mistake[] } {
  const mistakes: Mistake[] = [];
  const fill = (part: unknown, path: Mistake['path']): unknown => {
    if (Array.isArray(part)) return part.map((item, index) => fill(item, [...path, index]));
    if (typeof part !== 'string') return part;
    const [, foreign] = foreignPlaceholder.exec(part) ?? [];
    if (foreign !== undefined) {
      mistakes.push({ path, message: `a variable of the environment is written \${${foreign}} here` });
      return part;
    }
    return part.replace(placeholder, (whole, name: string | undefined) => {
      const found = name === undefined ? undefined : environment[name];
      if (typeof found === 'string') return found;
      const message =
        name === undefined
          ? 'expected the name of an environment variable in the braces'
          : `expected the environment variable ${name} to be set`;
      mistakes.push({ path, message });
      return whole;
    });
  };
  refuseElsewhere(value, [], mistakes);
  const vendors = entriesOf((value as { vendors?: unknown } | null)?.vendors);
  if (vendors === undefined) return { value, mistakes };
  const filled = vendors.map(([name, vendor]) => {
    const fields = entriesOf(vendor)?.map(([key, part]) => [
      key,
      filledKeys.includes(key) ? fill(part, ['vendors', name, key]) : part,
    ]);
    return [name, fields === undefined ? vendor : Object.fromEntries(fields)];
  });
  return { value: { ...(value as object), vendors: Object.fromEntries(filled) }, mistakes };
}

/** Reports each `${` where nothing is replaced. */
function refuseElsewhere(part: unknown, path: Mistake['path'], mistakes: Mistake[]): void {
  const isFilled = path.length === 3 && path[0] === 'vendors' && filledKeys.includes(String(path[2]));
  if (isFilled || path.length > maxDepth) return;
  if (typeof part === 'string' && /\$\{/.test(part)) {
    const message = `variables of the environment are read in ${filledKeys.join(', ')} of vendors only`;
    mistakes.push({ path, message });
  } else if (Array.isArray(part)) {
    for (const [index, item] of part.entries()) refuseElsewhere(item, [...path, index], mistakes);
  } else {
    for (const [key, item] of entriesOf(part) ?? []) refuseElsewhere(item, [...path, key], mistakes);
  }
}

/** Returns undefined for anything that is not a mapping. */
function entriesOf(value: unknown): [string, unknown][] | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.entries(value) : undefined;
}
