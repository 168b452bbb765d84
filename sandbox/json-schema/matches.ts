import { isObject, type JsonObject } from '../json-value.ts';
import { isEqual, isUnique } from './equal.ts';
import { stringFormats } from './formats.ts';
import {
  asSchema,
  numberAt,
  type Schema,
  type SchemaDocument,
  schemaEntries,
  schemaList,
  stringsAt,
} from './schema.ts';

/**
 * True if the value is an instance of the schema, by the keywords of JSON Schema 2020-12 (and `definitions`, `nullable`). Not
 * supported: unevaluatedProperties and unevaluatedItems.
 */
export function matches(document: SchemaDocument, schema: Schema, value: unknown): boolean {
  document.countStep();
  if (typeof schema === 'boolean') return schema;
  if (schema.nullable === true && value === null) return true;
  return (
    matchesType(schema, value) &&
    matchesCombinations(document, schema, value) &&
    (typeof value !== 'number' || matchesNumber(schema, value)) &&
    (typeof value !== 'string' || matchesString(document, schema, value)) &&
    (!Array.isArray(value) || matchesArray(document, schema, value)) &&
    (!isObject(value) || matchesObject(document, schema, value))
  );
}

/** True if the value has this JSON type; 1.0 is an integer. */
function hasType(type: unknown, value: unknown): boolean {
  switch (type) {
    case 'null':
      return value === null;
    case 'array':
      return Array.isArray(value);
    case 'object':
      return isObject(value);
    case 'integer':
      return Number.isInteger(value);
    default:
      return typeof value === type;
  }
}

function matchesType(schema: JsonObject, value: unknown): boolean {
  const { type } = schema;
  if (type !== undefined && ![type].flat().some((one) => hasType(one, value))) return false;
  if (Object.hasOwn(schema, 'const') && !isEqual(schema.const, value)) return false;
  return !Array.isArray(schema.enum) || schema.enum.some((item) => isEqual(item, value));
}

function matchesCombinations(document: SchemaDocument, schema: JsonObject, value: unknown): boolean {
  const fits = (other: Schema) => matches(document, other, value);
  for (const reference of [schema.$ref, schema.$dynamicRef]) {
    if (typeof reference === 'string' && !fits(document.resolve(reference))) return false;
  }
  if (!schemaList(schema.allOf).every(fits)) return false;
  if (Array.isArray(schema.anyOf) && !schemaList(schema.anyOf).some(fits)) return false;
  if (Array.isArray(schema.oneOf) && schemaList(schema.oneOf).filter(fits).length !== 1) return false;
  if (schema.not !== undefined && fits(asSchema(schema.not))) return false;
  if (schema.if === undefined) return true;
  const branch = fits(asSchema(schema.if)) ? schema.then : schema.else;
  return branch === undefined || fits(asSchema(branch));
}

function matchesNumber(schema: JsonObject, value: number): boolean {
  const divisor = numberAt(schema, 'multipleOf');
  return (
    value >= (numberAt(schema, 'minimum') ?? value) &&
    value <= (numberAt(schema, 'maximum') ?? value) &&
    value > (numberAt(schema, 'exclusiveMinimum') ?? Number.NEGATIVE_INFINITY) &&
    value < (numberAt(schema, 'exclusiveMaximum') ?? Number.POSITIVE_INFINITY) &&
    (divisor === undefined || Number.isInteger(value / divisor))
  );
}

function matchesString(document: SchemaDocument, schema: JsonObject, value: string): boolean {
  const length = [...value].length;
  if (length < (numberAt(schema, 'minLength') ?? 0)) return false;
  if (length > (numberAt(schema, 'maxLength') ?? length)) return false;
  if (typeof schema.pattern === 'string' && !document.expression(schema.pattern).test(value)) return false;
  return stringFormats.get(schema.format)?.check.test(value) ?? true;
}

function matchesArray(document: SchemaDocument, schema: JsonObject, items: readonly unknown[]): boolean {
  if (items.length < (numberAt(schema, 'minItems') ?? 0)) return false;
  if (items.length > (numberAt(schema, 'maxItems') ?? items.length)) return false;
  if (schema.uniqueItems === true && !isUnique(items)) return false;
  if (!items.every((item, index) => matches(document, itemSchema(schema, index), item))) return false;
  if (schema.contains === undefined) return true;
  const contained = asSchema(schema.contains);
  const count = items.filter((item) => matches(document, contained, item)).length;
  return count >= (numberAt(schema, 'minContains') ?? 1) && count <= (numberAt(schema, 'maxContains') ?? items.length);
}

/** The schema for the item at an index: from 2020-12 (`prefixItems`, `items`) or older drafts (a list in `items`). */
export function itemSchema(schema: JsonObject, index: number): Schema {
  const isOlder = Array.isArray(schema.items);
  const first = schemaList(isOlder ? schema.items : schema.prefixItems)[index];
  return first ?? asSchema((isOlder ? schema.additionalItems : schema.items) ?? true);
}

function matchesObject(document: SchemaDocument, schema: JsonObject, object: JsonObject): boolean {
  const names = Object.keys(object);
  if (names.length < (numberAt(schema, 'minProperties') ?? 0)) return false;
  if (names.length > (numberAt(schema, 'maxProperties') ?? names.length)) return false;
  if (!stringsAt(schema, 'required').every((name) => Object.hasOwn(object, name))) return false;
  const nameSchema = asSchema(schema.propertyNames ?? true);
  return (
    names.every((name) => matches(document, nameSchema, name)) &&
    names.every((name) =>
      propertySchemas(document, schema, name).every((one) => matches(document, one, object[name])),
    ) &&
    matchesDependents(document, schema, object)
  );
}

/** Every schema that applies to the property of this name. */
export function propertySchemas(document: SchemaDocument, schema: JsonObject, name: string): Schema[] {
  const { properties } = schema;
  const found: Schema[] = [];
  if (isObject(properties) && Object.hasOwn(properties, name)) found.push(asSchema(properties[name]));
  for (const [pattern, property] of schemaEntries(schema.patternProperties)) {
    if (document.expression(pattern).test(name)) found.push(property);
  }
  return found.length > 0 ? found : [asSchema(schema.additionalProperties ?? true)];
}

function matchesDependents(document: SchemaDocument, schema: JsonObject, object: JsonObject): boolean {
  const required = isObject(schema.dependentRequired) ? schema.dependentRequired : {};
  for (const name of Object.keys(required)) {
    if (!Object.hasOwn(object, name)) continue;
    if (!stringsAt(required, name).every((other) => Object.hasOwn(object, other))) return false;
  }
  return schemaEntries(schema.dependentSchemas).every(([name, dependent]) => {
    return !Object.hasOwn(object, name) || matches(document, dependent, object);
  });
}
