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
  const definitions = new Definitions(schema, room, { isReplaced: () => true, standIn: kindOf });
  return definitions.inlined(withoutDefinitions(schema), [], 0) as JsonObject;
}

/**
 * A schema in which each reference is to a definition, or to the root, and stands alone: where something stands beside it, such as a
 * description, and for another part of the schema, what it leads to does in place of it.
 * @param room that the schemas of the request share
 */
export function withLoneReferences(schema: JsonObject, room: DefinitionsRoom): JsonObject {
  const isReplaced = (node: JsonObject): boolean =>
    !definitionReference.test(String(node.$ref)) || Object.keys(node).some((keyword) => !keyword.startsWith('$'));
  const standIn = (definition: JsonObject, reference: string): JsonObject =>
    definitionReference.test(reference) ? { $ref: reference } : kindOf(definition);
  return new Definitions(schema, room, { isReplaced, standIn }).inlined(schema, [], 0) as JsonObject;
}

/** A reference to a definition, or to the root; libraries refer to the first use of a schema, too (`#/properties/from`). */
const definitionReference = /^#(?:\/(?:\$defs|definitions)\/[^/]+)?$/;

interface Replacement {
  /** Whether what a node's reference leads to is to be in place of it. */
  readonly isReplaced: (node: JsonObject) => boolean;
  /** What stands for a definition that cannot be in place of a reference to it. */
  readonly standIn: (definition: JsonObject, reference: string) => JsonObject;
}

interface Definition {
  readonly definition: JsonObject;
  readonly standIn: JsonObject;
}

class Definitions {
  readonly #schema: JsonObject;
  readonly #replacement: Replacement;
  readonly #room: DefinitionsRoom;
  /** By the references to them; undefined for those that lead nowhere. */
  readonly #definitions = new Map<string, Definition | undefined>();
  /** Of all that is in the schema, and of what stands for it, once a reference leads to any of it: each may be referred to a hundred thousand times. */
  readonly #characters = new Map<unknown, number>();

  constructor(schema: JsonObject, room: DefinitionsRoom, replacement: Replacement) {
    this.#schema = schema;
    this.#room = room;
    this.#replacement = replacement;
  }

  /** @param open the references that the value is in the definitions of */
  inlined(value: unknown, open: readonly string[], depth: number): unknown {
    if (depth > maxDepth) return value;
    const inner = (each: unknown): unknown => this.inlined(each, open, depth + 1);
    if (Array.isArray(value)) return value.map(inner);
    if (!isObject(value)) return value;
    const { $ref: reference } = value;
    const isText = typeof reference === 'string';
    const found = isText && this.#replacement.isReplaced(value) ? this.#find(reference) : undefined;
    const given = Object.entries(value).filter(([keyword]) => found === undefined || keyword !== '$ref');
    const own = Object.fromEntries(given.map(([keyword, each]) => [keyword, inner(each)]));
    if (found === undefined || !isText) return own;
    const { definition, standIn } = found;
    if (!open.includes(reference) && open.length < maxNested && this.#take(definition)) {
      return { ...(this.inlined(definition, [...open, reference], depth + 1) as JsonObject), ...own };
    }
    if (standIn.$ref !== undefined) return standIn;
    // Its description may have megabytes.
    return this.#take(standIn) ? { ...standIn, ...own } : own;
  }

  #find(reference: string): Definition | undefined {
    if (this.#definitions.has(reference)) return this.#definitions.get(reference);
    const target = reference === '#' ? withoutDefinitions(this.#schema) : partAt(this.#schema, reference);
    const found = isObject(target)
      ? { definition: target, standIn: this.#replacement.standIn(target, reference) }
      : undefined;
    // What one reference leads to may be inside of what another one does, so all is measured at once.
    if (found !== undefined && this.#characters.size === 0) this.#room.add(this.#measure(this.#schema, 0));
    this.#definitions.set(reference, found);
    return found;
  }

  #measure(value: unknown, depth: number): number {
    if (typeof value !== 'object' || value === null || depth > maxDepth) return JSON.stringify(value)?.length ?? 0;
    let characters = 2;
    for (const [name, each] of Object.entries(value)) {
      characters += (Array.isArray(value) ? 1 : name.length + 4) + this.#measure(each, depth + 1);
    }
    this.#characters.set(value, characters);
    return characters;
  }

  /** Whether there is room for a definition, or for what stands for it, which then is taken. */
  #take(part: JsonObject): boolean {
    const characters = this.#characters.get(part) ?? JSON.stringify(part).length;
    this.#characters.set(part, characters);
    return this.#room.take(characters);
  }
}

/** A schema without the keywords of its root. */
function withoutDefinitions(schema: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(schema).filter(([keyword]) => !rootKeywords.has(keyword)));
}

/** What a definition is, without what is in it. */
function kindOf({ type, description }: JsonObject): JsonObject {
  return { ...(type !== undefined && { type }), ...(description !== undefined && { description }) };
}

/** The part of a schema that a JSON Pointer (RFC 6901) in a reference leads to; undefined if there is none. */
function partAt(schema: JsonObject, reference: string): unknown {
  if (!reference.startsWith('#/')) return undefined;
  let part: unknown = schema;
  for (const segment of reference.slice(2).split('/')) {
    if (typeof part !== 'object' || part === null) return undefined;
    const name = [segment, decoded(segment)]
      .map((each) => each.replaceAll('~1', '/').replaceAll('~0', '~'))
      .find((each) => Object.hasOwn(part as JsonObject, each));
    if (name === undefined) return undefined;
    part = (part as JsonObject)[name];
  }
  return part;
}

/** A segment of a reference without its percent-encoding, which libraries may leave out. */
function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
