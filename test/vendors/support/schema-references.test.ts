import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { withLoneReferences, withoutReferences } from '../../../workers/vendors/schema-references.ts';

type Fields = Record<string, unknown>;

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

  it('a schema that is nested beyond all use is changed without harm', () => {
    let deep: Fields = toPlace;
    for (let level = 0; level < 5000; level++) deep = { type: 'array', items: deep };
    assert.equal(withoutReferences({ properties: { deep } }).properties !== undefined, true);
  });
});
