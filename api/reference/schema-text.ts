import type { JsonSchema } from './request-schemas.ts';

/** A field of a body, by its path: `messages[].content`. */
export interface FieldRow {
  readonly name: string;
  readonly type: string;
  readonly isRequired: boolean;
  readonly description: string;
}

/** Maximum depth to which nested fields are listed. */
const maxDepth = 3;

/** The fields of an object's schema, including nested ones. */
export function fieldRows(schema: JsonSchema, prefix = '', depth = 1): FieldRow[] {
  const { properties = {}, required = [] } = schema as { properties?: Record<string, JsonSchema>; required?: string[] };
  return Object.entries(properties).flatMap(([name, field]) => {
    const path = `${prefix}${name}`;
    const row: FieldRow = {
      name: path,
      type: typeText(field),
      isRequired: required.includes(name),
      description: String(field.description ?? ''),
    };
    const [inner, suffix] = innerObject(field);
    return inner === undefined || depth === maxDepth
      ? [row]
      : [row, ...fieldRows(inner, `${path}${suffix}.`, depth + 1)];
  });
}

/** The object in a field, possibly nullable or in a list; of several kinds of objects, all their fields together. */
function innerObject(schema: JsonSchema): [JsonSchema | undefined, suffix: string] {
  const choices = choicesOf(schema);
  if (choices[0] !== schema) return merged(choices.map(innerObject));
  if (schema.type === 'array' && typeof schema.items === 'object') {
    const [item, suffix] = innerObject(schema.items as JsonSchema);
    return [item, `[]${suffix}`];
  }
  return [schema.type === 'object' ? schema : undefined, ''];
}

/** Merges the fields of objects at the same depth. */
function merged(inners: readonly ReturnType<typeof innerObject>[]): ReturnType<typeof innerObject> {
  const found = inners.flatMap(([inner, suffix]) => (inner === undefined ? [] : [{ inner, suffix }]));
  const [first] = found;
  if (first === undefined || found.some(({ suffix }) => suffix !== first.suffix)) return [undefined, ''];
  const kinds = found.map(({ inner }) => inner as { properties?: Record<string, JsonSchema>; required?: string[] });
  const names = [...new Set(kinds.flatMap(({ properties = {} }) => Object.keys(properties)))];
  const properties = names.map((name) => {
    const types = kinds.flatMap(({ properties: { [name]: type } = {} }) => (type === undefined ? [] : [type]));
    return [name, types.length === 1 ? types[0] : { anyOf: types }];
  });
  const required = names.filter((name) => kinds.every((kind) => kind.required?.includes(name)));
  return [{ type: 'object', properties: Object.fromEntries(properties), required }, first.suffix];
}

function choicesOf(schema: JsonSchema): readonly JsonSchema[] {
  return (schema.anyOf ?? schema.oneOf ?? [schema]) as readonly JsonSchema[];
}

/** Summarizes a schema: `string or null`, `list of integer`, `"url" or "b64_json"`, `number, 0 to 2`. */
export function typeText(schema: JsonSchema): string {
  const choices = choicesOf(schema);
  // Removes duplicates of several choices.
  if (choices[0] !== schema)
    return [...new Set(choices.map(typeText).flatMap((text) => text.split(' or ')))].join(' or ');
  const { type, enum: values } = schema as { type?: string | string[]; enum?: unknown[] };
  if (typeof schema.$ref === 'string') return schema.$ref.slice(schema.$ref.lastIndexOf('/') + 1);
  if (values !== undefined) return values.map((value) => JSON.stringify(value)).join(' or ');
  if ('const' in schema) return JSON.stringify(schema.const);
  if (schema.contentMediaType !== undefined) return 'file';
  if (type === undefined) return 'any';
  if (Array.isArray(type)) return type.join(' or ');
  if (type === 'array') return `list of ${typeText((schema.items ?? {}) as JsonSchema)}${boundsText(schema)}`;
  return `${type === 'object' ? objectText(schema) : type}${boundsText(schema)}`;
}

/** An object with the field that identifies it in its union: `object (role "user")`. */
function objectText({ properties = {} }: { properties?: Record<string, JsonSchema> }): string {
  const kind = Object.entries(properties).find(([, { const: value }]) => typeof value === 'string');
  return kind === undefined ? 'object' : `object (${kind[0]} ${JSON.stringify(kind[1].const)})`;
}

const bounds = [
  ['minimum', 'maximum', ''],
  ['minLength', 'maxLength', ' characters'],
  ['minItems', 'maxItems', ' items'],
] as const;

function boundsText(schema: JsonSchema): string {
  const texts = bounds.flatMap(([least, most, unit]) => {
    const [from, to] = [schema[least], schema[most]];
    if (from === undefined && to === undefined) return [];
    if (to === undefined) return [`${from} or more${unit}`];
    return [from === undefined ? `up to ${to}${unit}` : `${from} to ${to}${unit}`];
  });
  const usual = schema.default === undefined ? [] : [`default ${JSON.stringify(schema.default)}`];
  return [...texts, ...usual].map((text) => `, ${text}`).join('');
}
