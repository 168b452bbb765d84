import type { JsonObject } from '../json-value.ts';
import { isEqual } from './equal.ts';
import { propertySchemas } from './matches.ts';
import { asSchema, type Schema, type SchemaDocument, schemaEntries, schemaList } from './schema.ts';

const largest = (left: unknown, right: unknown) => Math.max(left as number, right as number);
const smallest = (left: unknown, right: unknown) => Math.min(left as number, right as number);

/** How to merge a keyword present in both schemas; keywords not listed keep the second schema's value. */
const joins: Readonly<Record<string, (left: unknown, right: unknown) => unknown>> = {
  minimum: largest,
  exclusiveMinimum: largest,
  minLength: largest,
  minItems: largest,
  minProperties: largest,
  minContains: largest,
  maximum: smallest,
  exclusiveMaximum: smallest,
  maxLength: smallest,
  maxItems: smallest,
  maxProperties: smallest,
  maxContains: smallest,
  multipleOf: commonMultiple,
  uniqueItems: (left, right) => left === true || right === true,
  nullable: (left, right) => left === true && right === true,
  required: (left, right) => [...new Set([left, right].flat())],
  contains: (left, right) => bothOf(asSchema(left), asSchema(right)),
  propertyNames: (left, right) => bothOf(asSchema(left), asSchema(right)),
  enum: (left, right) => [left].flat().filter((item) => [right].flat().some((one) => isEqual(one, item))),
  type: commonTypes,
};

/**
 * Merges two schemas for generating instances: keywords that cannot be merged (two patterns, two formats) keep one side, as
 * the instance is validated against the originals anyway. Combinations (`anyOf`, `$ref` …) are not merged here.
 */
export function mergeSchemas(document: SchemaDocument, left: JsonObject, right: JsonObject): JsonObject {
  const merged: JsonObject = { ...left, ...right };
  for (const [keyword, join] of Object.entries(joins)) {
    if (left[keyword] !== undefined && right[keyword] !== undefined) {
      merged[keyword] = join(left[keyword], right[keyword]);
    }
  }
  const names = [left, right].flatMap((schema) => schemaEntries(schema.properties).map(([name]) => name));
  if (names.length > 0) {
    merged.properties = Object.fromEntries(
      [...new Set(names)].map((name) => {
        const all = [left, right].flatMap((schema) => propertySchemas(document, schema, name));
        return [name, all.reduce(bothOf)];
      }),
    );
  }
  if (left.additionalProperties !== undefined && right.additionalProperties !== undefined) {
    merged.additionalProperties = bothOf(asSchema(left.additionalProperties), asSchema(right.additionalProperties));
  }
  const patterns = [left, right].flatMap((schema) => schemaEntries(schema.patternProperties));
  if (patterns.length > 0) merged.patternProperties = joinEntries(patterns);
  return mergeItems(merged, left, right);
}

function bothOf(left: Schema, right: Schema): Schema {
  if (left === true) return right;
  if (right === true || left === right) return left;
  return left === false || right === false ? false : { allOf: [left, right] };
}

function joinEntries(entries: readonly [string, Schema][]): JsonObject {
  const joined = new Map<string, Schema>();
  for (const [name, schema] of entries) joined.set(name, bothOf(joined.get(name) ?? true, schema));
  return Object.fromEntries(joined);
}

function mergeItems(merged: JsonObject, left: JsonObject, right: JsonObject): JsonObject {
  if (Array.isArray(left.items) || Array.isArray(right.items)) return merged;
  if (left.items === undefined && left.prefixItems === undefined) return merged;
  const items = [left, right].map((schema) => asSchema(schema.items ?? true));
  const prefixes = [left, right].map((schema) => schemaList(schema.prefixItems));
  const length = Math.max(...prefixes.map((prefix) => prefix.length));
  if (length > 0) {
    merged.prefixItems = Array.from({ length }, (_, index) => {
      return prefixes.map((prefix, side) => prefix[index] ?? (items[side] as Schema)).reduce(bothOf);
    });
  }
  merged.items = items.reduce(bothOf);
  return merged;
}

function commonTypes(left: unknown, right: unknown): unknown[] {
  const rights = [right].flat();
  return [left].flat().flatMap((type) => {
    if (rights.includes(type)) return [type];
    if (type === 'number' && rights.includes('integer')) return ['integer'];
    return type === 'integer' && rights.includes('number') ? ['integer'] : [];
  });
}

/** The least common multiple, exact for numbers of up to six decimals. */
function commonMultiple(left: unknown, right: unknown): number {
  const scale = 1_000_000;
  let [divisor, rest] = [Math.round((left as number) * scale), Math.round((right as number) * scale)];
  const product = divisor * rest;
  while (rest > 0) [divisor, rest] = [rest, divisor % rest];
  return product / divisor / scale;
}
