import type { IncomingHttpHeaders } from 'node:http';
import { isAbsent, isObject, type JsonObject } from './json-value.ts';
import { parseBody } from './parse-body.ts';
import { type FaultKind, limitFault, type RequestOptions, readRequestOptions } from './request-options.ts';
import { invalidParameter, WireError } from './wire-error.ts';

/**
 * The fields of a media request, from JSON or from a form, whose values are all text. Every reader returns undefined for a
 * missing field.
 * @throws WireError 400 naming the invalid field, in OpenAI's wording.
 */
export class RequestFields {
  readonly #values: JsonObject;
  readonly #fromForm: boolean;

  private constructor(values: JsonObject, fromForm: boolean) {
    this.#values = values;
    this.#fromForm = fromForm;
  }

  static fromJson(text: string): RequestFields {
    return new RequestFields(parseBody(text), false);
  }

  static fromForm(fields: ReadonlyMap<string, string[]>): RequestFields {
    const values = [...fields].map(([name, texts]) => [name, texts.length === 1 ? texts[0] : texts] as const);
    return new RequestFields(Object.fromEntries(values), true);
  }

  /** Rejects every field except the known ones and those allowed in all requests. */
  allowOnly(known: readonly string[]): void {
    for (const name of Object.keys(this.#values)) {
      if (known.includes(name) || commonFields.includes(name)) continue;
      throw new WireError(400, `Unknown parameter: '${name.slice(0, 200)}'.`, {
        code: 'unknown_parameter',
        param: name.slice(0, 200),
      });
    }
  }

  /** The value as sent. */
  raw(name: string): unknown {
    return this.#values[name] ?? undefined;
  }

  text(name: string): string | undefined {
    const value = this.raw(name);
    if (value === undefined || typeof value === 'string') return value;
    throw invalidParameter(name, `Invalid type for '${name}': expected a string.`);
  }

  requiredText(name: string, maximumLength = Number.POSITIVE_INFINITY): string {
    const text = this.text(name);
    if (text === undefined) {
      throw new WireError(400, `Missing required parameter: '${name}'.`, {
        code: 'missing_required_parameter',
        param: name,
      });
    }
    if (text === '') {
      const message = `Invalid '${name}': empty string. Expected a string with minimum length 1, but got an empty string instead.`;
      throw new WireError(400, message, { code: 'empty_string', param: name });
    }
    // OpenAI counts characters, not UTF-16 units.
    const length = text.length > maximumLength ? [...text].length : 0;
    if (length <= maximumLength) return text;
    const message = `Invalid '${name}': string too long. Expected a string with maximum length ${maximumLength}, but got a string with length ${length} instead.`;
    throw new WireError(400, message, { code: 'string_above_max_length', param: name });
  }

  number(name: string, minimum: number, maximum: number, kind: 'integer' | 'decimal' = 'decimal'): number | undefined {
    const sent = this.raw(name);
    if (sent === undefined) return undefined;
    const isNumberText = this.#fromForm && typeof sent === 'string' && /^-?\d+(\.\d+)?$/.test(sent);
    const value = isNumberText ? Number(sent) : sent;
    if (typeof value !== 'number' || (kind === 'integer' && !Number.isInteger(value))) {
      throw invalidParameter(name, `Invalid type for '${name}': expected ${kind === 'integer' ? 'an' : 'a'} ${kind}.`);
    }
    const [wrong, code] = value < minimum ? ['below minimum', 'below_min'] : ['above maximum', 'above_max'];
    if (value >= minimum && value <= maximum) return value;
    const bound = value < minimum ? `>= ${minimum}` : `<= ${maximum}`;
    const message = `Invalid '${name}': ${kind} ${wrong} value. Expected a value ${bound}, but got ${value} instead.`;
    throw new WireError(400, message, { code: `${kind}_${code}_value`, param: name });
  }

  flag(name: string): boolean | undefined {
    const value = this.raw(name);
    if (value === undefined || typeof value === 'boolean') return value;
    if (this.#fromForm && (value === 'true' || value === 'false')) return value === 'true';
    throw invalidParameter(name, `Invalid type for '${name}': expected a boolean.`);
  }

  choice<Choice extends string>(name: string, choices: readonly Choice[]): Choice | undefined {
    const value = this.raw(name);
    return value === undefined ? undefined : oneOf(name, value, choices);
  }

  /** The values of a repeatable field; empty if missing. */
  choices<Choice extends string>(name: string, choices: readonly Choice[]): Choice[] {
    const value = this.raw(name);
    if (value === undefined) return [];
    return (Array.isArray(value) ? value : [value]).map((each) => oneOf(name, each, choices));
  }

  /** An object; in a form, its JSON text. */
  object(name: string): JsonObject | undefined {
    const value = this.raw(name);
    if (isAbsent(value) || isObject(value)) return value ?? undefined;
    try {
      // The options may be JSON text even in JSON: a gateway that got them in a form passes them through unchanged.
      const isText = this.#fromForm || name === 'sandbox';
      const parsed: unknown = isText ? JSON.parse(String(value)) : undefined;
      if (isObject(parsed)) return parsed;
    } catch {}
    throw invalidParameter(name, `Invalid type for '${name}': expected an object.`);
  }
}

const commonFields = ['model', 'user', 'metadata', 'sandbox'];

function oneOf<Choice extends string>(name: string, value: unknown, choices: readonly Choice[]): Choice {
  const found = choices.find((choice) => choice === value);
  if (found !== undefined) return found;
  const supported = choices.map((choice) => `'${choice}'`).join(', ');
  const shown = typeof value === 'string' ? `'${value.slice(0, 200)}'` : 'of this type';
  const message = `Invalid value: ${shown}. Supported values are: ${supported}.`;
  throw new WireError(400, message, { code: 'invalid_value', param: name });
}

/** A media request's metadata. */
export interface CallOptions {
  testId: string | null;
  options: RequestOptions;
}

/**
 * Parses the caller's test id and the requested fault.
 * @param faults the kinds of fault possible for this answer.
 */
export function readCallOptions(
  fields: RequestFields,
  headers: IncomingHttpHeaders,
  faults: readonly FaultKind[],
): CallOptions {
  const options = limitFault(readRequestOptions(fields.object('sandbox'), headers['x-sandbox']), faults);
  const named = fields.object('metadata')?.test_id;
  const header = headers['x-sandbox-test-id'];
  const testId = typeof named === 'string' ? named : (fields.text('user') ?? header);
  return { testId: testId === undefined ? null : String(testId), options };
}
