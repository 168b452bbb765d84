import { isObject, type JsonObject } from '../json-value.ts';

/** A schema that has no instance, has a dangling reference, or is too complex to follow; the message says which. */
export class SchemaError extends Error {
  override name = 'SchemaError';
}

/** A JSON Schema, as parsed from JSON. */
export type Schema = boolean | JsonObject;

/** Converts a value to a schema, which must be an object or a boolean. */
export function asSchema(value: unknown): Schema {
  if (isObject(value) || typeof value === 'boolean') return value;
  throw new SchemaError('a schema must be an object or a boolean');
}

/** A list of schemas under a keyword (`anyOf`, `prefixItems`); empty if missing. */
export function schemaList(value: unknown): Schema[] {
  return Array.isArray(value) ? value.map(asSchema) : [];
}

/** Named schemas under a keyword (`properties`, `$defs`); empty if missing. */
export function schemaEntries(value: unknown): [string, Schema][] {
  return isObject(value) ? Object.entries(value).map(([name, schema]) => [name, asSchema(schema)]) : [];
}

/** The number under a keyword, if it is one. */
export function numberAt(schema: JsonObject, keyword: string): number | undefined {
  const value = schema[keyword];
  return typeof value === 'number' ? value : undefined;
}

/** The strings under a keyword (`required`); empty if missing. */
export function stringsAt(schema: JsonObject, keyword: string): string[] {
  const value = schema[keyword];
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
}

const STEP_LIMIT = 100_000;

/** A root schema: resolves references into it and counts steps, so that all processing terminates. */
export class SchemaDocument {
  readonly root: Schema;
  readonly #anchors = new Map<string, Schema>();
  readonly #expressions = new Map<string, RegExp>();
  #steps = 0;

  constructor(root: Schema) {
    this.root = root;
    this.#collectAnchors(root);
  }

  countStep(): void {
    this.#steps += 1;
    if (this.#steps > STEP_LIMIT) throw new SchemaError('the schema is too complex');
  }

  /** The schema that a `$ref` within the document refers to: a JSON pointer, an anchor, or an `$id`. */
  resolve(reference: string): Schema {
    if (reference === '#') return this.root;
    const named = this.#anchors.get(reference);
    if (named !== undefined) return named;
    if (reference.startsWith('#/')) {
      const target = this.#follow(reference.slice(2));
      if (isObject(target) || typeof target === 'boolean') return target;
    }
    throw new SchemaError(`the reference ${JSON.stringify(reference.slice(0, 200))} points nowhere`);
  }

  #follow(pointer: string): unknown {
    let target: unknown = this.root;
    for (const step of pointer.split('/')) {
      const name = decodeUri(step).replaceAll('~1', '/').replaceAll('~0', '~');
      if (typeof target !== 'object' || target === null || !Object.hasOwn(target, name)) return undefined;
      target = (target as JsonObject)[name];
    }
    return target;
  }

  #collectAnchors(root: unknown): void {
    const waiting: unknown[] = [root];
    for (let value = waiting.pop(); value !== undefined; value = waiting.pop()) {
      this.countStep();
      if (typeof value !== 'object' || value === null) continue;
      waiting.push(...Object.values(value).filter((child) => typeof child === 'object'));
      const { $anchor, $dynamicAnchor, $id } = value as JsonObject;
      for (const anchor of [$anchor, $dynamicAnchor]) {
        if (typeof anchor === 'string') this.#anchors.set(`#${anchor}`, value as Schema);
      }
      if (typeof $id === 'string') this.#anchors.set($id, value as Schema);
    }
  }

  /** The compiled form of a `pattern`. */
  expression(pattern: string): RegExp {
    const known = this.#expressions.get(pattern);
    if (known !== undefined) return known;
    const expression = compilePattern(pattern);
    this.#expressions.set(pattern, expression);
    return expression;
  }
}

function decodeUri(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** By the standard, patterns are Unicode ones; the older syntax is accepted if only that compiles. */
export function compilePattern(pattern: string): RegExp {
  for (const flags of ['u', '']) {
    try {
      return new RegExp(pattern, flags);
    } catch {
      // Tried again without the flag, then reported below.
    }
  }
  throw new SchemaError(`${JSON.stringify(pattern.slice(0, 200))} is not a regular expression`);
}
