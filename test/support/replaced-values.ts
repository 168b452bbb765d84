/** Where something stands in a value. */
export type Path = readonly (string | number)[];

/** The paths of a value: itself, and every member of it. */
export function pathsOf(value: unknown, path: Path = []): Path[] {
  if (typeof value !== 'object' || value === null) return [path];
  const steps = Array.isArray(value) ? value.map((_, index) => index) : Object.keys(value);
  const members = steps.flatMap((step) => pathsOf((value as Record<string, unknown>)[step], [...path, step]));
  return [path, ...members];
}

/** The value with something else in one place, or with that added before it, where the place is in a list. */
export function replaced(value: unknown, [step, ...rest]: Path, by: unknown, isAdded = false): unknown {
  if (step === undefined) return by;
  if (typeof value !== 'object' || value === null) return value;
  const old = (value as Record<string, unknown>)[step];
  if (Array.isArray(value)) {
    const index = Number(step);
    if (isAdded && rest.length === 0) return value.toSpliced(index, 0, by);
    return value.toSpliced(index, 1, replaced(old, rest, by, isAdded));
  }
  return { ...value, [step]: replaced(old, rest, by, isAdded) };
}
