import { isObject, type JsonObject } from './support/json-object.ts';

/**
 * Characters of definitions that replace references in all schemas of a request, beside twice what these have themselves: each of a few
 * dozen definitions may refer twice to the one before it. The request is priced before, by its own length.
 */
const minRoom = 64 * 1024;
/** Definitions inside of each other: more than any that a model could fill. */
const maxNested = 20;
/** Levels below which a schema is sent as it is. */
const maxDepth = 100;

/** Keywords of a schema's root that its definitions, or its name, are in. */
const rootKeywords: ReadonlySet<string> = new Set(['$defs', 'definitions', '$schema', '$id']);

/** What room the schemas of one request have left for definitions in place of references. */
export class DefinitionsRoom {
  #characters = minRoom;

  /** @param characters that one of the schemas has */
  add(characters: number): void {
    this.#characters += 2 * characters;
  }

  /** Whether so many characters fit, which then are taken. */
  take(characters: number): boolean {
    if (characters > this.#characters) return false;
    this.#characters -= characters;
    return true;
  }
}

/**
 * A schema without definitions, which stand in place of the references to them. A reference inside of the definition that it names
 * becomes the type alone, since its schema has no end otherwise.
 * @param room that the schemas of the request share
 */
export function withoutReferences(schema: JsonObject, room: DefinitionsRoom): JsonObject {
  const kept = Object.entries(schema).filter(([keyword]) => !rootKeywords.has(keyword));
  const definitions = new Definitions(schema, room, { isReplaced: () => true, standIn: kindOf });
  return definitions.inlined(Object.fromEntries(kept), [], 0) as JsonObject;
}

/**
 * A schema in which each reference stands alone: where something stands beside it, such as a description, the definition itself does
 * in place of it.
 * @param room that the schemas of the request share
 */
export function withLoneReferences(schema: JsonObject, room: DefinitionsRoom): JsonObject {
  const isReplaced = (node: JsonObject): boolean => Object.keys(node).some((keyword) => !keyword.startsWith('$'));
  const standIn = (_: JsonObject, reference: unknown): JsonObject => ({ $ref: reference });
  return new Definitions(schema, room, { isReplaced, standIn }).inlined(schema, [], 0) as JsonObject;
}

interface Replacement {
  /** Whether a definition is to be in place of a node's reference. */
  readonly isReplaced: (node: JsonObject) => boolean;
  /** What stands for a definition that cannot be in place of a reference to it. */
  readonly standIn: (definition: JsonObject, reference: unknown) => JsonObject;
}

class Definitions {
  /** By the references to them. */
  readonly #definitions = new Map<unknown, { readonly definition: JsonObject; readonly standIn: JsonObject }>();
  readonly #isReplaced: Replacement['isReplaced'];
  readonly #room: DefinitionsRoom;
  /** Of definitions, and of what stands for them, once they are known: each may be referred to a hundred thousand times. */
  readonly #characters = new Map<JsonObject, number>();

  constructor(schema: JsonObject, room: DefinitionsRoom, { isReplaced, standIn }: Replacement) {
    this.#room = room;
    this.#isReplaced = isReplaced;
    for (const keyword of ['$defs', 'definitions']) {
      const { [keyword]: definitions } = schema;
      for (const [name, definition] of Object.entries(isObject(definitions) ? definitions : {})) {
        const reference = `#/${keyword}/${escaped(name)}`;
        if (!isObject(definition)) continue;
        this.#definitions.set(reference, { definition, standIn: standIn(definition, reference) });
      }
    }
    if (this.#definitions.size > 0) room.add(JSON.stringify(schema).length);
  }

  /** @param open the references that the value is in the definitions of */
  inlined(value: unknown, open: readonly unknown[], depth: number): unknown {
    if (depth > maxDepth) return value;
    const inner = (each: unknown): unknown => this.inlined(each, open, depth + 1);
    if (Array.isArray(value)) return value.map(inner);
    if (!isObject(value)) return value;
    const { $ref: reference } = value;
    const found = this.#isReplaced(value) ? this.#definitions.get(reference) : undefined;
    const given = Object.entries(value).filter(([keyword]) => found === undefined || keyword !== '$ref');
    const own = Object.fromEntries(given.map(([keyword, each]) => [keyword, inner(each)]));
    if (found === undefined) return own;
    const { definition, standIn } = found;
    if (!open.includes(reference) && open.length < maxNested && this.#take(definition)) {
      return { ...(this.inlined(definition, [...open, reference], depth + 1) as JsonObject), ...own };
    }
    if (standIn.$ref !== undefined) return standIn;
    // Its description may have megabytes.
    return this.#take(standIn) ? { ...standIn, ...own } : own;
  }

  /** Whether there is room for a definition, or for what stands for it, which then is taken. */
  #take(part: JsonObject): boolean {
    const characters = this.#characters.get(part) ?? JSON.stringify(part).length;
    this.#characters.set(part, characters);
    return this.#room.take(characters);
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
