import type { FormEvent } from 'react';

/** The current values of a form's text fields by name; prevents the browser from submitting the form. */
export function readForm(event: FormEvent<HTMLFormElement>): Record<string, string> {
  event.preventDefault();
  const values: Record<string, string> = {};
  for (const [name, value] of new FormData(event.currentTarget)) if (typeof value === 'string') values[name] = value;
  return values;
}
