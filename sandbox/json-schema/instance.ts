import type { JsonObject } from '../json-value.ts';
import { isEqual } from './equal.ts';
import { itemSchema, matches, propertySchemas } from './matches.ts';
import { mergeSchemas } from './merge.ts';
import { numberInstances } from './number-instances.ts';
import { asSchema, numberAt, type Schema, SchemaDocument, SchemaError, schemaList, stringsAt } from './schema.ts';
import { stringInstances } from './string-instances.ts';

export { SchemaError } from './schema.ts';

/** Maximum nesting depths of an instance; tried in this order, so that instances stay small. */
const DEPTHS = [4, 8, 16, 32, 64];

const MAXIMUM_ALTERNATIVES = 64;
const MAXIMUM_OPTIONAL_PROPERTIES = 64;
const DISTINCT_ATTEMPTS = 24;

/**
 * A valid instance of a JSON Schema (2020-12, and the variants of older drafts and OpenAPI), the same for the same schema.
 * Optional properties are included, recursion ends as soon as it can.
 * @throws SchemaError if the schema is invalid, has no instance, or is too complex to find one.
 */
export function exampleInstance(root: unknown): unknown {
  const schema = asSchema(root);
  const document = new SchemaDocument(schema);
  for (const depth of DEPTHS) {
    const search = new InstanceSearch(document);
    const found = search.find(schema, { depth, references: [], recursing: false, variant: 0, name: 'text' });
    if (found !== undefined) return found.value;
    if (!search.metDepth) break;
  }
  throw new SchemaError('no instance of the schema was found');
}

/** The search's position in the instance. */
interface SearchState {
  /** Remaining levels. */
  depth: number;
  /** References followed so far. */
  references: readonly string[];
  /** Set once a reference was followed twice: from then on only required parts are generated. */
  recursing: boolean;
  /** Different numbers give different instances, for arrays of unique items. */
  variant: number;
  /** Name of the property, for meaningful texts. */
  name: string;
}

/** A schema without references and combinations, and the references followed to reach it. */
interface Alternative {
  schema: JsonObject;
  references: readonly string[];
}

/** Wrapped, because null and undefined could not be distinguished from "none". */
interface Found {
  value: unknown;
}

class InstanceSearch {
  metDepth = false;
  readonly #document: SchemaDocument;

  constructor(document: SchemaDocument) {
    this.#document = document;
  }

  /** A validated instance of the schema; undefined if none was found within the depth. */
  find(schema: Schema, state: SearchState): Found | undefined {
    this.#document.countStep();
    for (const alternative of this.#alternatives(schema, state)) {
      const recursing = state.recursing || isRecursion(alternative, state);
      const references = [...state.references, ...alternative.references];
      for (const value of this.#values(alternative.schema, { ...state, recursing, references })) {
        if (matches(this.#document, schema, value)) return { value };
      }
    }
    return undefined;
  }

  /** The ways to satisfy a schema, in its own order, except that recursive ones come last. */
  #alternatives(schema: Schema, state: SearchState): Alternative[] {
    const found: Alternative[] = [];
    for (const alternative of this.#flatten(schema, [])) {
      found.push(alternative);
      if (found.length === MAXIMUM_ALTERNATIVES) break;
    }
    const recursive = found.filter((alternative) => isRecursion(alternative, state));
    return [...found.filter((alternative) => !recursive.includes(alternative)), ...recursive];
  }

  /** @param path references followed to reach this schema without a level in between. */
  *#flatten(schema: Schema, path: readonly string[]): Generator<Alternative> {
    this.#document.countStep();
    if (schema === false) return;
    if (schema === true) return yield { schema: {}, references: [] };
    const { $ref, $dynamicRef, allOf, anyOf, oneOf, if: condition, then: consequent, else: otherwise, ...own } = schema;
    // One alternative of each group must be chosen.
    const groups: Schema[][] = schemaList(allOf).map((part) => [part]);
    if (anyOf !== undefined) groups.push(schemaList(anyOf));
    if (oneOf !== undefined) groups.push(schemaList(oneOf));
    if (condition !== undefined) groups.push([{ allOf: [condition, consequent ?? true] }, asSchema(otherwise ?? true)]);
    const references = [$ref, $dynamicRef].filter((reference) => typeof reference === 'string');
    // A reference that leads back to itself without a level in between is meaningless.
    if (references.some((reference) => path.includes(reference))) return;
    for (const reference of references) groups.push([this.#document.resolve(reference)]);
    yield* this.#combine(groups, { schema: own, references }, [...path, ...references]);
  }

  *#combine(groups: readonly Schema[][], soFar: Alternative, path: readonly string[]): Generator<Alternative> {
    const [group, ...others] = groups;
    if (group === undefined) return yield soFar;
    for (const option of group) {
      for (const part of this.#flatten(option, path)) {
        const schema = mergeSchemas(this.#document, soFar.schema, part.schema);
        const references = [...soFar.references, ...part.references];
        yield* this.#combine(others, { schema, references }, path);
      }
    }
  }

  *#values(schema: JsonObject, state: SearchState): Generator<unknown> {
    if (Object.hasOwn(schema, 'const')) return yield schema.const;
    if (Array.isArray(schema.enum)) {
      const { enum: values } = schema;
      for (let index = 0; index < values.length; index += 1) yield values[(index + state.variant) % values.length];
      return;
    }
    if (state.variant === 0) {
      if (schema.default !== undefined) yield schema.default;
      if (Array.isArray(schema.examples)) yield* schema.examples;
    }
    for (const type of instanceTypes(schema)) yield* this.#valuesOfType(type, schema, state);
    if (schema.nullable === true) yield null;
  }

  *#valuesOfType(type: unknown, schema: JsonObject, state: SearchState): Generator<unknown> {
    switch (type) {
      case 'string':
        // More than one, for a `not` that forbids the first.
        for (const more of [0, 1, 2]) yield* stringInstances(schema, state.name, state.variant + more);
        return;
      case 'number':
      case 'integer':
        for (const more of [0, 1, 2]) yield* numberInstances(schema, type === 'integer', state.variant + more);
        return;
      case 'boolean':
        yield state.variant % 2 === 0;
        yield state.variant % 2 !== 0;
        return;
      case 'null':
        return yield null;
      case 'array':
      case 'object':
        if (state.depth === 0) this.metDepth = true;
        else yield* type === 'array' ? this.#arrays(schema, state) : this.#objects(schema, state);
    }
  }

  *#arrays(schema: JsonObject, state: SearchState): Generator<unknown[]> {
    const min = Math.max(
      numberAt(schema, 'minItems') ?? 0,
      schema.contains === undefined ? 0 : (numberAt(schema, 'minContains') ?? 1),
    );
    const prefix = schemaList(Array.isArray(schema.items) ? schema.items : schema.prefixItems).length;
    const wanted = state.recursing ? min : Math.max(min, prefix, 1);
    const lengths = new Set([Math.min(wanted, numberAt(schema, 'maxItems') ?? wanted), min]);
    for (const length of lengths) {
      const items = this.#items(schema, state, length);
      if (items !== undefined) yield items;
    }
  }

  #items(schema: JsonObject, state: SearchState, length: number): unknown[] | undefined {
    const items: unknown[] = [];
    const contained = schema.contains === undefined ? 0 : (numberAt(schema, 'minContains') ?? 1);
    for (let index = 0; index < length; index += 1) {
      const own = itemSchema(schema, index);
      const item = index < length - contained ? own : { allOf: [own, asSchema(schema.contains)] };
      const found = this.#item(item, state, schema.uniqueItems === true ? items : []);
      if (found === undefined) return undefined;
      items.push(found.value);
    }
    return items;
  }

  /** An item that differs from all others. */
  #item(schema: Schema, state: SearchState, others: readonly unknown[]): Found | undefined {
    for (let attempt = 0; attempt < DISTINCT_ATTEMPTS; attempt += 1) {
      const variant = state.variant + others.length + attempt;
      const found = this.find(schema, { ...state, depth: state.depth - 1, variant });
      if (found === undefined) return undefined;
      if (!others.some((other) => isEqual(other, found.value))) return found;
    }
    return undefined;
  }

  *#objects(schema: JsonObject, state: SearchState): Generator<JsonObject> {
    const max = numberAt(schema, 'maxProperties') ?? Number.POSITIVE_INFINITY;
    const required = stringsAt(schema, 'required');
    const declared = Object.keys((schema.properties as JsonObject | undefined) ?? {});
    const optional = state.recursing ? [] : declared.filter((name) => !required.includes(name));
    // Optional properties may exclude each other (`not`, dependencies): the second try omits them.
    for (const extra of optional.length > 0 ? [optional.slice(0, MAXIMUM_OPTIONAL_PROPERTIES), []] : [[]]) {
      const properties = this.#requiredProperties(schema, required, state);
      if (properties === undefined) return;
      for (const name of extra) {
        if (properties.size >= max) break;
        this.#addProperty(properties, schema, name, state);
      }
      this.#addMissing(properties, schema, state);
      yield Object.fromEntries(properties);
    }
  }

  #requiredProperties(
    schema: JsonObject,
    required: readonly string[],
    state: SearchState,
  ): Map<string, unknown> | undefined {
    const properties = new Map<string, unknown>();
    for (const name of required) {
      if (!this.#addProperty(properties, schema, name, state)) return undefined;
    }
    return properties;
  }

  #addProperty(properties: Map<string, unknown>, schema: JsonObject, name: string, state: SearchState): boolean {
    const [first, ...others] = propertySchemas(this.#document, schema, name);
    const all = others.length === 0 ? (first as Schema) : { allOf: [first, ...others] };
    const found = this.find(all, { ...state, depth: state.depth - 1, name });
    if (found !== undefined) properties.set(name, found.value);
    return found !== undefined;
  }

  /** Adds properties required by others, and as many as `minProperties` still needs, under allowed names. */
  #addMissing(properties: Map<string, unknown>, schema: JsonObject, state: SearchState): void {
    const dependent = (schema.dependentRequired as JsonObject | undefined) ?? {};
    for (const name of properties.keys()) {
      for (const other of stringsAt(dependent, name)) {
        if (!properties.has(other)) this.#addProperty(properties, schema, other, state);
      }
    }
    const min = numberAt(schema, 'minProperties') ?? 0;
    const declared = Object.keys((schema.properties as JsonObject | undefined) ?? {});
    const names = [...declared, ...this.#freeNames(schema, min)];
    for (const name of names) {
      if (properties.size >= min) return;
      if (!properties.has(name)) this.#addProperty(properties, schema, name, state);
    }
  }

  *#freeNames(schema: JsonObject, count: number): Generator<string> {
    const [pattern] = Object.keys((schema.patternProperties as JsonObject | undefined) ?? {});
    const nameSchema = asSchema(schema.propertyNames ?? (pattern === undefined ? true : { pattern }));
    for (let variant = 0; variant < count * 2; variant += 1) {
      const state = { depth: 1, references: [], recursing: true, variant, name: 'property' };
      const found = this.find(typeof nameSchema === 'boolean' ? { type: 'string' } : nameSchema, state);
      if (typeof found?.value === 'string') yield found.value;
    }
  }
}

function isRecursion(alternative: Alternative, state: SearchState): boolean {
  return alternative.references.some((reference) => state.references.includes(reference));
}

const typesByKeyword: readonly [string, readonly string[]][] = [
  ['object', ['properties', 'required', 'additionalProperties', 'patternProperties', 'minProperties', 'propertyNames']],
  ['array', ['items', 'prefixItems', 'minItems', 'maxItems', 'uniqueItems', 'contains']],
  ['string', ['minLength', 'maxLength', 'pattern', 'format']],
  ['number', ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf']],
];

/** The types an instance may have, null last; without `type` those that the other keywords apply to, then any. */
function instanceTypes(schema: JsonObject): unknown[] {
  if (schema.type !== undefined) {
    const types = [schema.type].flat();
    return [...types.filter((type) => type !== 'null'), ...types.filter((type) => type === 'null')];
  }
  const likely = typesByKeyword.filter(([, keywords]) => keywords.some((keyword) => schema[keyword] !== undefined));
  const types = [...likely.map(([type]) => type), 'string', 'integer', 'boolean', 'object', 'array', 'null'];
  return [...new Set(types)];
}
