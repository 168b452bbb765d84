import type { Mistake } from './mistake.ts';

/** The fields of a vendor that may contain `${NAME}`. */
const filledKeys = ['base_url', 'api_key', 'api_keys'];

/** `${NAME}`, or the start of a malformed one. */
const placeholder = /\$\{(?:([A-Za-z_][A-Za-z0-9_]*)\})?/g;

/** Replaces `${NAME}` in addresses and keys of vendors with the environment's values. */
export function fillPlaceholders(
  value: unknown,
  environment: Readonly<Record<string, unknown>>,
): { readonly value: unknown; readonly mistakes: readonly Mistake[] } {
  const mistakes: Mistake[] = [];
  const fill = (part: unknown, path: Mistake['path']): unknown => {
    if (Array.isArray(part)) return part.map((item, index) => fill(item, [...path, index]));
    if (typeof part !== 'string') return part;
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

/** Returns undefined for anything that is not a mapping. */
function entriesOf(value: unknown): [string, unknown][] | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.entries(value) : undefined;
}
