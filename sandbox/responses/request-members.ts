import { isAbsent, type JsonObject } from '../json-value.ts';
import { invalidParameter, WireError } from '../wire-error.ts';

/**
 * Returns a required member, which must be a string.
 * @throws WireError 400 naming it, like `input[2].call_id`.
 */
export function requiredText(object: JsonObject, name: string, path: string): string {
  const value = object[name];
  if (typeof value === 'string') return value;
  const param = `${path}.${name}`;
  throw isAbsent(value) ? missingMember(param) : wrongType(param, 'a string');
}

/** The error for a missing required member. */
export function missingMember(param: string): WireError {
  return new WireError(400, `Missing required parameter: '${param}'.`, { code: 'missing_required_parameter', param });
}

/** The error for a member of the wrong type; `expected` is like `an object`. */
export function wrongType(param: string, expected: string): WireError {
  return invalidParameter(param, `Invalid type for '${param}': expected ${expected}.`);
}

/** The error for a value outside those allowed for a member. */
export function unsupportedValue(param: string, value: string, supported: readonly string[]): WireError {
  const names = supported.map((name) => `'${name}'`).join(', ');
  const message = `Invalid value: '${value.slice(0, 200)}'. Supported values are: ${names}.`;
  return new WireError(400, message, { code: 'invalid_value', param });
}
