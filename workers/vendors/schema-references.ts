import { isObject, type JsonObject } from './support/json-object.ts';

/** Characters of definitions that replace references, in all: each of a few dozen definitions may refer twice to the one before it. */
const maxCharacters = 1024 * 1024;
/** Definitions inside of each other: more than any that a model could fill. */
const maxNested = 20;
/** Levels below which a schema is sent as it is. */
const maxDepth = 100;

/** Keywords of a schema's root that its definitions, or its name, are in. */
const rootKeywords: ReadonlySet<string> = new Set(['$defs', 'definitions', '$schema', '$id']);

/**
 * A schema without definitions, which stand in place of the references to them. A reference inside of the definition that it names
 * becomes the type alone, since its schema has no end otherwise.
 */
export function withoutReferences(schema: JsonObject): JsonObject {
  const kept = Object.entries(schema).filter(([keyword]) => !rootKeywords.has(keyword));
  const definitions = new Definitions(schema, () => true, kindOf);
  return definitions.inlined(Object.fromEntries(kept), [], 0) as JsonObject;
}

/**
 * A schema in which each reference stands alone: where something stands beside it, such as a description, the definition itself does
 * in place of it.
 */
export function withLoneReferences(schema: JsonObject): JsonObject {
  const isAccompanied = (node: JsonObject): boolean => Object.keys(node).some((keyword) => !keyword.startsWith('$'));
  const bare = (_: JsonObject, reference: unknown): JsonObject => ({ $ref: reference });
  return new Definitions(schema, isAccompanied, bare).inlined(schema, [], 0) as JsonObject;
}

/** What stands for a definition that cannot be in place of a reference to it. */
type StandIn = (definition: JsonObject, reference: unknown) => JsonObject;

class Definitions {
  /** By the references to them. */
  readonly #definitions = new Map<unknown, JsonObject>();
  readonly #isReplaced: (node: JsonObject) => boolean;
  readonly #standIn: StandIn;
  #charactersLeft = maxCharacters;

  constructor(schema: JsonObject, isReplaced: (node: JsonObject) => boolean, standIn: StandIn) {
    this.#isReplaced = isReplaced;
    this.#standIn = standIn;
    for (const keyword of ['$defs', 'definitions']) {
      const { [keyword]: definitions } = schema;
      for (const [name, definition] of Object.entries(isObject(definitions) ? definitions : {})) {
        if (isObject(definition)) this.#definitions.set(`#/${keyword}/${escaped(name)}`, definition);
      }
    }
  }

  /** @param open the references that the value is in the definitions of */
  inlined(value: unknown, open: readonly unknown[], depth: number): unknown {
    if (depth > maxDepth) return value;
    const inner = (each: unknown): unknown => this.inlined(each, open, depth + 1);
    if (Array.isArray(value)) return value.map(inner);
    if (!isObject(value)) return value;
    const { $ref: reference } = value;
    const found = this.#definitions.get(reference);
    const definition = found !== undefined && this.#isReplaced(value) ? found : undefined;
    const given = Object.entries(value).filter(([keyword]) => definition === undefined || keyword !== '$ref');
    const own = Object.fromEntries(given.map(([keyword, each]) => [keyword, inner(each)]));
    if (definition === undefined) return own;
    if (open.includes(reference) || open.length >= maxNested || !this.#take(definition)) {
      const standIn = this.#standIn(definition, reference);
      return standIn.$ref === undefined ? { ...standIn, ...own } : standIn;
    }
    return { ...(this.inlined(definition, [...open, reference], depth + 1) as JsonObject), ...own };
  }

  /** Whether there is room for a definition, which then is taken. */
  #take(definition: JsonObject): boolean {
    if (this.#charactersLeft > 0) this.#charactersLeft -= JSON.stringify(definition).length;
    return this.#charactersLeft > 0;
  }
}

/** What a definition is, without what is in it. */
function kindOf({ type, description }: JsonObject): JsonObject {
  return { ...(type !== undefined && { type }), ...(description !== undefined && { description }) };
}

/** A name in a JSON Pointer (RFC 6901). */
function escaped(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}
