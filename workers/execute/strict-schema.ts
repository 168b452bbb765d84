import { isObject } from '../vendors/support/json-object.ts';

/** Keywords that a strict schema may not have at OpenAI. */
const missing = [
  ...['allOf', 'oneOf', 'not', 'if', 'then', 'else', 'dependentRequired', 'dependentSchemas', 'patternProperties'],
  'default',
];
const formats = new Set<unknown>([
  ...['date-time', 'time', 'date', 'duration', 'email', 'hostname', 'ipv4', 'ipv6', 'uuid'],
]);
/** Levels below which no schema is strict: OpenAI takes ten. */
const maxDepth = 20;

/**
 * Whether OpenAI takes a schema in strict mode (https://platform.openai.com/docs/guides/structured-outputs#supported-schemas): every
 * object has all of its properties required, and no others. Anthropic's structured outputs know properties that may be left out.
 */
export function fitsStrictMode(schema: unknown, depth = 0): boolean {
  if (!isObject(schema)) return typeof schema !== 'boolean';
  if (depth > maxDepth || missing.some((keyword) => schema[keyword] !== undefined)) return false;
  const { type, properties, required, format, items, anyOf, $defs, definitions } = schema;
  if (format !== undefined && !formats.has(format)) return false;
  const isOfObjects = type === 'object' || (Array.isArray(type) && type.includes('object')) || isObject(properties);
  if (isOfObjects && !hasAllRequired(schema.additionalProperties, properties, required)) return false;
  const inner = [...valuesOf(properties), ...valuesOf($defs), ...valuesOf(definitions), ...valuesOf(anyOf)];
  return [...inner, ...(items === undefined ? [] : [items])].every((each) => fitsStrictMode(each, depth + 1));
}

function hasAllRequired(others: unknown, properties: unknown, required: unknown): boolean {
  const names = isObject(properties) ? Object.keys(properties) : [];
  const needed = new Set<unknown>(Array.isArray(required) ? required : []);
  return others === false && names.every((name) => needed.has(name));
}

/** The values of a map, or of a list. */
function valuesOf(schemas: unknown): unknown[] {
  return typeof schemas === 'object' && schemas !== null ? Object.values(schemas) : [];
}
