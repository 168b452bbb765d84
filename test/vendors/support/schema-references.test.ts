import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as references from '../../../workers/vendors/schema-references.ts';

type Fields = Record<string, unknown>;

const withLoneReferences = (schema: Fields): Fields =>
  references.withLoneReferences(schema, new references.DefinitionsRoom());
const withoutReferences = (schema: Fields): Fields =>
  references.withoutReferences(schema, new references.DefinitionsRoom());

const place = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
const toPlace = { $ref: '#/$defs/place' };

describe('references in schemas', () => {
  it('a reference with something beside it gives way to its definition, and one alone stays', () => {
    const node = { type: 'object', properties: { next: { $ref: '#/definitions/node', description: 'The next.' } } };
    const schema = {
      type: 'object',
      properties: { a: toPlace, b: { ...toPlace, description: 'B.' }, $ref: { type: 'string' }, c: { enum: [1] } },
      $defs: { place },
      definitions: { node },
    };
    const inner = { type: 'object', properties: { next: { $ref: '#/definitions/node' } }, description: 'The next.' };
    assert.deepEqual(withLoneReferences(schema), {
      ...schema,
      properties: { ...schema.properties, b: { ...place, description: 'B.' } },
      definitions: { node: { type: 'object', properties: { next: inner } } },
    });
  });

  it('a root that is a reference, as libraries make it of a named schema, is an object beside its definitions', () => {
    const root = { type: 'object', $ref: '#/definitions/place', definitions: { place } };
    assert.deepEqual(withLoneReferences(root), { ...place, definitions: { place } });
    assert.deepEqual(withoutReferences(root), place);
  });

  it('a reference that leads nowhere, or is no text, stays as it is', () => {
    const schema = { properties: { a: { $ref: '#/$defs/none', title: 'A' }, b: { $ref: 5, title: 'B' } }, $defs: 7 };
    assert.deepEqual(withLoneReferences(schema), schema);
    assert.deepEqual(withoutReferences(schema), { properties: schema.properties });
  });

  it('a reference to another part of the schema gives way to what it leads to, also to the root or to a definition inside', () => {
    const list = { type: 'array', $defs: { 'a b': place }, items: { $ref: '#/properties/list/$defs/a%20b' } };
    const schema = {
      type: 'object',
      properties: {
        from: place,
        to: { $ref: '#/properties/from' },
        via: { anyOf: [{ type: 'null' }, { $ref: '#/properties/list/items' }] },
        list,
        more: { $ref: '#', description: 'As a whole.' },
        near: { type: 'object', properties: { next: { $ref: '#/properties/near' } } },
      },
      $defs: { place },
    };
    const near = { type: 'object', properties: { next: { type: 'object', properties: { next: { type: 'object' } } } } };
    const inlined = { ...list, items: place };
    const { properties } = withoutReferences(schema) as { properties: Fields };
    assert.deepEqual(
      { ...properties, more: undefined },
      { from: place, to: place, via: { anyOf: [{ type: 'null' }, place] }, list: inlined, near, more: undefined },
    );
    const { more } = properties as { more: { description: string; properties: Fields } };
    assert.deepEqual(more.properties.more, { type: 'object', description: 'As a whole.' });
    assert.deepEqual([more.description, more.properties.to], ['As a whole.', place]);
    const lone = withLoneReferences({ ...schema, properties: { ...schema.properties, more: { $ref: '#' } } });
    assert.deepEqual(lone.properties, { ...properties, more: { $ref: '#' } });
  });

  it('what very many references lead to is measured once, however deep they lead into each other', () => {
    let deep: Fields = { type: 'string', description: 'x'.repeat(1_000_000) };
    let path = '#';
    const properties: Fields = {};
    for (let level = 0; level < 90; level++) {
      path += level === 0 ? '/properties/deep' : '/items';
      properties[`p${level}`] = { $ref: path, title: '' };
      deep = { type: 'array', items: deep };
    }
    for (const change of [withLoneReferences, withoutReferences]) {
      assert.ok(JSON.stringify(change({ type: 'object', properties: { ...properties, deep } })).length < 5_000_000);
    }
  });

  it('definitions that name each other without end, or double dozens of times, stay within bounds', () => {
    const names = Array.from({ length: 60 }, (_, at) => `d${at}`);
    const twice = (name: string): Fields => {
      const reference = { $ref: `#/$defs/${name}`, title: name };
      return { a: reference, b: reference };
    };
    const $defs = Object.fromEntries(
      names.map((name, at) => [name, { type: 'object', properties: twice(names[at + 1] ?? 'd0') }]),
    );
    const schema = { type: 'object', properties: twice('d0'), $defs };
    for (const change of [withLoneReferences, withoutReferences]) {
      const text = JSON.stringify(change(schema));
      assert.ok(text.length < 10_000_000, String(text.length));
    }
    assert.ok(!JSON.stringify(withoutReferences(schema)).includes('$ref'));
  });

  it('very many schemas of one request whose definitions double share what room there is', () => {
    const names = Array.from({ length: 16 }, (_, at) => `d${at}`);
    const twice = (name: string): Fields => ({
      a: { $ref: `#/$defs/${name}`, title: '' },
      b: { $ref: `#/$defs/${name}` },
    });
    const $defs = Object.fromEntries(names.map((name, at) => [name, { properties: twice(names[at + 1] ?? 'd0') }]));
    const schemas = Array.from({ length: 1000 }, () => ({ type: 'object', properties: twice('d0'), $defs }));
    const given = JSON.stringify(schemas).length;
    for (const change of [references.withLoneReferences, references.withoutReferences]) {
      const room = new references.DefinitionsRoom();
      const made = schemas
        .map((schema) => JSON.stringify(change(schema, room)).length)
        .reduce((one, other) => one + other);
      assert.ok(made < 4 * given, `${made} characters of ${given}`);
    }
  });

  it('a long description of a definition that refers to itself, or that very many refer to, is not repeated without end', () => {
    const description = 'x'.repeat(20_000);
    const toItself = Array.from({ length: 1000 }, () => ({ $ref: '#/$defs/a' }));
    const a = { type: 'object', description, properties: { all: { allOf: toItself } } };
    const made = withoutReferences({ type: 'object', properties: { a: { anyOf: toItself } }, $defs: { a } });
    assert.ok(JSON.stringify(made).length < 400_000);
  });

  it('a schema that is nested beyond all use is changed without harm', () => {
    let deep: Fields = toPlace;
    for (let level = 0; level < 5000; level++) deep = { type: 'array', items: deep };
    assert.equal(withoutReferences({ properties: { deep } }).properties !== undefined, true);
  });
});
