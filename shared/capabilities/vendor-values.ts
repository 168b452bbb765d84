// Vendors' answers are passed on as they are, so each of their values may have any shape.

type Fields = Record<string, unknown>;

/** The objects of a list; none where it is no list. */
export function objectsOf(value: unknown): Fields[] {
  return Array.isArray(value) ? value.filter(isFields) : [];
}

/** The fields of an object; none where it is none. */
export function fieldsOf(value: unknown): Fields {
  return isFields(value) ? value : {};
}

/** A text; an empty one where it is none. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** An index, or a number of characters; the other one where it is missing or no number. */
export function numberOf(value: unknown, otherwise = 0): number {
  const given = typeof value === 'string' && value !== '' ? Number(value) : value;
  return typeof given === 'number' && Number.isFinite(given) ? given : otherwise;
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
