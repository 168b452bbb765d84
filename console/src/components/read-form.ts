import type { FormEvent } from 'react';

/** The values of a form's text fields by name, as they stand; keeps the browser from sending the form itself. */
export function readForm(event: FormEvent<HTMLFormElement>): Record<string, string> {
  event.preventDefault();
  const values: Record<string, string> = {};
  for (const [name, value] of new FormData(event.currentTarget)) if (typeof value === 'string') values[name] = value;
  return values;
}
