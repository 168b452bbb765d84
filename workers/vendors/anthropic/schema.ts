import { stringifyExact } from '../../../shared/capabilities/exact-json.ts';
import { isObject, type JsonObject } from '../support/json-object.ts';

/** Keywords of JSON Schema that structured outputs do not have. */
const missing = new Set([
  ...['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf', 'minLength', 'maxLength'],
  ...['maxItems', 'uniqueItems', 'prefixItems', 'contains', 'minContains', 'maxContains', 'unevaluatedItems'],
  ...['minProperties', 'maxProperties', 'patternProperties', 'propertyNames', 'unevaluatedProperties'],
  ...['not', 'if', 'then', 'else', 'dependentRequired', 'dependentSchemas'],
]);
const formats = new Set<unknown>([
  ...['date-time', 'time', 'date', 'duration', 'email', 'hostname', 'uri', 'ipv4', 'ipv6', 'uuid'],
]);
/** Parts of regular expressions that are missing: assertions, boundaries of words, and references to groups. */
const missingInPattern = /\(\?[=!<]|\\[bBk1-9]/;

/** Levels below which a schema is sent as it is: more than any that a model could fill. */
const maxDepth = 100;

/**
 * A schema as structured outputs take it, at Anthropic and at Bedrock, which refuse the request for any keyword that they do not have
 * (https://platform.claude.com/docs/en/build-with-claude/structured-outputs#json-schema-limitations). As in Anthropic's own SDKs, such
 * keywords become part of the description, `oneOf` becomes `anyOf`, and objects have no properties but the listed ones.
 */
export function toAnthropicSchema(schema: JsonObject, depth = 0): JsonObject {
  if (depth > maxDepth) return schema;
  const toInner = (each: JsonObject): JsonObject => toAnthropicSchema(each, depth + 1);
  const kept: [string, unknown][] = [];
  const left: [string, unknown][] = [];
  for (const [keyword, value] of Object.entries(schema)) {
    // The latter names the dialect alone.
    if (keyword === 'additionalProperties' || keyword === '$schema') continue;
    if (isTaken(schema, keyword, value))
      kept.push([keyword === 'oneOf' ? 'anyOf' : keyword, inner(keyword, value, toInner)]);
    else left.push([keyword, value]);
  }
  return {
    ...Object.fromEntries(kept),
    ...(left.length > 0 && { description: described(schema.description, Object.fromEntries(left)) }),
    ...(isOfObjects(schema) && { additionalProperties: false }),
  };
}

function isTaken(schema: JsonObject, keyword: string, value: unknown): boolean {
  switch (keyword) {
    case 'minItems':
      return value === 0 || value === 1;
    case 'format':
      return formats.has(value);
    case 'pattern':
      return !missingInPattern.test(String(value));
    case 'oneOf':
      return schema.anyOf === undefined;
    default:
      return !missing.has(keyword);
  }
}

function isOfObjects({ type, properties }: JsonObject): boolean {
  return type === 'object' || (Array.isArray(type) && type.includes('object')) || isObject(properties);
}

/** The value of a keyword, the schemas in it converted. */
function inner(keyword: string, value: unknown, toInner: (schema: JsonObject) => unknown): unknown {
  const convert = (each: unknown): unknown => (isObject(each) ? toInner(each) : each);
  switch (keyword) {
    case 'properties':
    case '$defs':
    case 'definitions':
      if (!isObject(value)) return value;
      return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, convert(each)]));
    case 'anyOf':
    case 'oneOf':
    case 'allOf':
      return Array.isArray(value) ? value.map(convert) : value;
    case 'items':
      return convert(value);
    default:
      return value;
  }
}

/** A description with what the schema itself cannot say. */
function described(description: unknown, left: JsonObject): string {
  const note = stringifyExact(left);
  return typeof description === 'string' && description !== '' ? `${description}\n\n${note}` : note;
}

/** The most that Anthropic takes in one request. */
const strictLimits = { tools: 20, optional: 24, unions: 16 };

/**
 * Whether Anthropic takes these schemas in one request: beyond its limits it refuses the request
 * (https://platform.claude.com/docs/en/build-with-claude/structured-outputs#schema-complexity-limits). OpenAI's clients reach them
 * soon: there every property of a strict tool is required, so one that may be left out is a union with null.
 * @param tools converted schemas of the strict tools
 * @param answer converted schema of the answer
 */
export function isWithinStrictLimits(tools: readonly JsonObject[], answer: JsonObject): boolean {
  const counts = { optional: 0, unions: 0 };
  for (const schema of [...tools, answer]) countIn(schema, counts, 0);
  return (
    tools.length <= strictLimits.tools &&
    counts.optional <= strictLimits.optional &&
    counts.unions <= strictLimits.unions
  );
}

/** Counts the properties that may be left out, and the unions, in a schema and the ones in it. */
function countIn(schema: JsonObject, counts: { optional: number; unions: number }, depth: number): void {
  if (depth > maxDepth) return;
  const { type, anyOf, properties, required } = schema;
  if (Array.isArray(type) || anyOf !== undefined) counts.unions += 1;
  if (isObject(properties)) {
    const names = new Set<unknown>(Array.isArray(required) ? required : []);
    counts.optional += Object.keys(properties).filter((name) => !names.has(name)).length;
  }
  for (const [keyword, value] of Object.entries(schema)) {
    inner(keyword, value, (each) => countIn(each, counts, depth + 1));
  }
}

const unions = ['allOf', 'anyOf', 'oneOf'] as const;

/**
 * The schema of a tool without a union at its root, which Anthropic refuses, and with it all tools: `input_schema does not support
 * oneOf, allOf, or anyOf at the top level`. The properties of its branches, and of the unions in these, become those of the tool,
 * required where every choice requires them, and the union itself part of the description.
 */
export function withoutRootUnion(schema: JsonObject): JsonObject {
  const given = unions.filter((keyword) => Array.isArray(schema[keyword]));
  if (given.length === 0) return schema;
  const { anyOf, oneOf, allOf, ...rest } = schema;
  const all = branchesOf(allOf, schema);
  const choices = [branchesOf(anyOf, schema), branchesOf(oneOf, schema)];
  const left = Object.fromEntries(given.map((keyword) => [keyword, schema[keyword]]));
  return {
    ...rest,
    properties: joinedProperties(allBranches(schema)),
    required: [...new Set([schema, ...all].flatMap(requiredBy).concat(choices.flatMap(requiredByEach)))],
    description: described(schema.description, left),
  };
}

/** The branches of a union, each once: a hundred thousand may refer to one definition of as many properties. */
function branchesOf(union: unknown, root: JsonObject): JsonObject[] {
  const branches = (Array.isArray(union) ? union : []).filter(isObject);
  return [...new Set(branches.map((branch) => definitionOf(branch, root)))];
}

/** A schema, its branches and theirs, each once. */
function allBranches(root: JsonObject): ReadonlySet<JsonObject> {
  const all = new Set([root]);
  for (const schema of all) {
    for (const branch of unions.flatMap((keyword) => branchesOf(schema[keyword], root))) all.add(branch);
  }
  return all;
}

/** A branch, or what it refers to. */
function definitionOf(branch: JsonObject, { $defs, definitions }: JsonObject): JsonObject {
  const [, keyword, name] = /^#\/(\$defs|definitions)\/([^/~]+)$/.exec(String(branch.$ref)) ?? [];
  const named = keyword === '$defs' ? $defs : definitions;
  const definition = isObject(named) && name !== undefined && Object.hasOwn(named, name) ? named[name] : undefined;
  return isObject(definition) ? definition : branch;
}

/** The properties of several schemas; one that several have in different ways is either. */
function joinedProperties(schemas: Iterable<JsonObject>): JsonObject {
  const found = new Map<string, Map<string, unknown>>();
  for (const { properties } of schemas) {
    for (const [name, property] of Object.entries(isObject(properties) ? properties : {})) {
      const ways = found.get(name) ?? new Map<string, unknown>();
      found.set(name, ways.set(stringifyExact(property), property));
    }
  }
  const joined = [...found].map(([name, ways]) => [
    name,
    ways.size === 1 ? [...ways.values()][0] : { anyOf: [...ways.values()] },
  ]);
  return Object.fromEntries(joined) as JsonObject;
}

function requiredBy({ required }: JsonObject): string[] {
  return Array.isArray(required) ? required.filter((name) => typeof name === 'string') : [];
}

function requiredByEach(choices: readonly JsonObject[]): string[] {
  const [first, ...others] = choices.map((choice) => new Set(requiredBy(choice)));
  return [...(first ?? [])].filter((name) => others.every((each) => each.has(name)));
}
