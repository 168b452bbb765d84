import type { Mistake } from './mistake.ts';

/** The parts of a vendor that `${NAME}` may stand in. */
const filledKeys = ['base_url', 'api_key', 'api_keys'];

/** `${NAME}`, or the beginning of one that is not written so. */
const placeholder = /\$\{(?:([A-Za-z_][A-Za-z0-9_]*)\})?/g;

/** The file's data with the environment's values in place of `${NAME}` in addresses and keys of vendors. */
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

/** Undefined for anything that is not a mapping. */
function entriesOf(value: unknown): [string, unknown][] | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.entries(value) : undefined;
}
