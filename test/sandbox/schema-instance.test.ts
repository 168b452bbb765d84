import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import fc from 'fast-check';
import { exampleInstance, SchemaError } from '../../sandbox/json-schema/instance.ts';
import { patternTexts } from '../../sandbox/json-schema/pattern-text.ts';

type JsonObject = Record<string, unknown>;

const ajv = new Ajv2020({ strict: false, allErrors: true, logger: false });
addFormats.default(ajv);

/** An independent judge: not the sandbox's own check. */
function violations(schema: unknown, instance: unknown): string {
  ajv.validate(schema as JsonObject, instance);
  return ajv.errorsText();
}

function assertInstance(schema: unknown): unknown {
  let instance: unknown;
  assert.doesNotThrow(() => {
    instance = JSON.parse(JSON.stringify(exampleInstance(schema)));
  }, JSON.stringify(schema));
  assert.equal(violations(schema, instance), 'No errors', `${JSON.stringify(schema)} ↦ ${JSON.stringify(instance)}`);
  return instance;
}

const range = (maximum: number) =>
  fc
    .tuple(fc.integer({ min: 0, max: maximum }), fc.integer({ min: 0, max: maximum }))
    .map(([a, b]) => [Math.min(a, b), Math.max(a, b)]);

const strings = fc.oneof(
  fc.constant({ type: 'string' }),
  range(40).map(([minLength, maxLength]) => ({ type: 'string', minLength, maxLength })),
  fc
    .constantFrom(
      ...['date', 'time', 'date-time', 'duration', 'email', 'hostname', 'ipv4', 'ipv6', 'uri', 'uuid', 'json-pointer'],
    )
    .map((format) => ({ type: 'string', format })),
  fc
    .constantFrom(
      ...[
        '^[a-z]{2,5}$',
        '^\\d{3}-\\d{4}$',
        '^(red|green)(-dark)?$',
        '[A-Z]\\w+@',
        '^#[0-9a-fA-F]{6}$',
        '^é+$',
        '^\\p{Lu}',
      ],
      ...['^[^a-z]+$', '^\\(\\+?\\d{1,3}\\) .*$', '^(?:a|b|(c{2}))*d$', '^\\S+\\s\\S+$'],
    )
    .map((pattern) => ({ type: 'string', pattern })),
  fc.uniqueArray(fc.string(), { minLength: 1, maxLength: 4 }).map((values) => ({ enum: values })),
);

const numbers = fc.oneof(
  fc
    .tuple(fc.integer({ min: -1000, max: 1000 }), fc.integer({ min: 1, max: 500 }), fc.boolean())
    .map(([low, width, exclusive]) => ({
      type: 'integer',
      ...(exclusive ? { exclusiveMinimum: low - 1 } : { minimum: low }),
      ...(exclusive ? { exclusiveMaximum: low + width + 1 } : { maximum: low + width }),
    })),
  fc
    .tuple(fc.integer({ min: -50, max: 50 }), fc.constantFrom(2, 3, 7, 0.5, 0.25))
    .map(([minimum, multipleOf]) => ({ type: 'number', minimum, maximum: minimum + 10, multipleOf })),
  fc
    .tuple(fc.double({ min: -1e6, max: 1e6, noNaN: true }), fc.double({ min: 1e-3, max: 1e3, noNaN: true }))
    .map(([low, width]) => ({ type: 'number', exclusiveMinimum: low, exclusiveMaximum: low + width })),
);

const others = fc.oneof(
  fc.constantFrom<unknown>({ type: 'boolean' }, { type: 'null' }, true, {}, { type: ['null', 'string'] }),
  fc
    .jsonValue({ maxDepth: 2 })
    // The judge's own comparison of objects calls these where an object has them.
    .filter((value) => !/"(?:toString|valueOf|constructor)":/.test(JSON.stringify(value)))
    .map((value) => ({ const: value })),
);

const { schema: schemas } = fc.letrec<{ schema: unknown; object: JsonObject }>((tie) => ({
  schema: fc.oneof(
    { maxDepth: 4, depthSize: 'small' },
    strings,
    numbers,
    others,
    tie('object'),
    fc.tuple(tie('schema'), range(4)).map(([items, [minItems, maxItems]]) => {
      return { type: 'array', items, minItems, maxItems };
    }),
    fc
      .array(tie('schema'), { minLength: 1, maxLength: 3 })
      .map((prefixItems) => ({ type: 'array', prefixItems, items: false, minItems: prefixItems.length })),
    fc.array(tie('schema'), { minLength: 1, maxLength: 3 }).map((anyOf) => ({ anyOf })),
    fc
      .tuple(tie('object'), tie('object'))
      .map(([left, right]) => ({ allOf: [renamed(left, 'left'), renamed(right, 'right')] })),
    tie('object').map((object) => ({ oneOf: [{ type: 'string', maxLength: 3 }, object] })),
  ),
  object: fc
    .tuple(
      fc.dictionary(fc.string({ maxLength: 8 }), tie('schema'), { maxKeys: 4 }),
      fc.boolean(),
      fc.constantFrom(true, false, { type: 'integer' }),
      fc.boolean(),
    )
    .map(([properties, allRequired, additionalProperties, more]) => ({
      type: 'object',
      properties,
      required: Object.keys(properties).slice(0, allRequired ? undefined : 1),
      additionalProperties,
      ...(more && additionalProperties !== false && { minProperties: Object.keys(properties).length + 2 }),
    })),
}));

/** Property names made different, and open, so that two objects can be one. */
function renamed(object: JsonObject, prefix: string): JsonObject {
  const properties = Object.entries(object.properties as JsonObject);
  return {
    ...object,
    properties: Object.fromEntries(properties.map(([name, schema]) => [`${prefix}${name}`, schema])),
    required: (object.required as string[]).map((name) => `${prefix}${name}`),
    additionalProperties: true,
  };
}

describe('exampleInstance', () => {
  it('exampleInstance makes a valid instance of every satisfiable schema', () => {
    fc.assert(
      fc.property(schemas, (schema) => {
        assertInstance(schema);
      }),
      { numRuns: 400 },
    );
  });

  it('exampleInstance makes the same instance of the same schema', () => {
    fc.assert(
      fc.property(schemas, (schema) => {
        // Both are read: JSON has no -0, which the generator knows.
        const text = JSON.stringify(schema);
        assert.deepEqual(exampleInstance(JSON.parse(text)), exampleInstance(JSON.parse(text)));
      }),
      { numRuns: 100 },
    );
  });

  it('exampleInstance fails only with a SchemaError, whatever it is given as a schema', () => {
    const keywords = fc.constantFrom(
      ...[
        'type',
        'enum',
        'const',
        'properties',
        'required',
        'items',
        'anyOf',
        'allOf',
        'oneOf',
        'not',
        '$ref',
        'minimum',
      ],
      ...[
        'pattern',
        'minLength',
        'format',
        'prefixItems',
        'contains',
        'additionalProperties',
        'if',
        'multipleOf',
        '$defs',
      ],
      ...['dependentRequired', 'patternProperties', 'minItems', 'uniqueItems', 'propertyNames', 'default', 'examples'],
    );
    const wild = fc.dictionary(keywords, fc.oneof(fc.jsonValue({ maxDepth: 3 }), schemas, fc.array(schemas)));
    fc.assert(
      fc.property(fc.oneof(wild, fc.jsonValue({ maxDepth: 3 })), (schema) => {
        try {
          exampleInstance(schema);
        } catch (error) {
          assert.ok(error instanceof SchemaError, String((error as Error).stack));
        }
      }),
      { numRuns: 400 },
    );
  });

  it('exampleInstance ends the recursion of trees, lists and mutually recursive schemas', () => {
    assertInstance({
      $defs: {
        node: {
          type: 'object',
          properties: { value: { type: 'integer' }, next: { anyOf: [{ $ref: '#/$defs/node' }, { type: 'null' }] } },
          required: ['value', 'next'],
          additionalProperties: false,
        },
      },
      $ref: '#/$defs/node',
    });
    assertInstance({
      type: 'object',
      properties: { name: { type: 'string' }, children: { type: 'array', items: { $ref: '#' } } },
      required: ['name', 'children'],
    });
    assertInstance({
      definitions: {
        expression: { oneOf: [{ $ref: '#/definitions/sum' }, { $ref: '#/definitions/literal' }] },
        sum: {
          type: 'object',
          properties: { left: { $ref: '#/definitions/expression' }, right: { $ref: '#/definitions/expression' } },
          required: ['left', 'right'],
        },
        literal: { type: 'object', properties: { literal: { type: 'number' } }, required: ['literal'] },
      },
      $ref: '#/definitions/expression',
    });
  });

  it('exampleInstance follows references with escapes and anchors, and schemas beside them', () => {
    assertInstance({ $defs: { 'a/b~c': { type: 'string' } }, $ref: '#/$defs/a~1b~0c', minLength: 20 });
    assertInstance({
      $defs: { named: { $anchor: 'here', type: 'integer' } },
      type: 'array',
      items: { $ref: '#here' },
      minItems: 2,
    });
  });

  it('exampleInstance satisfies keywords in combination', () => {
    for (const schema of [
      { type: 'array', items: { type: 'integer', minimum: 3, maximum: 9 }, minItems: 5, uniqueItems: true },
      { type: 'array', items: { enum: ['a', 'b', 'c'] }, minItems: 3, uniqueItems: true },
      { type: 'array', items: { type: 'string', maxLength: 1 }, minItems: 9, uniqueItems: true },
      {
        type: 'array',
        items: { type: 'object', properties: { id: { type: 'string', format: 'uuid' } }, required: ['id'] },
        minItems: 3,
        uniqueItems: true,
      },
      { type: 'array', contains: { const: 7 }, minContains: 2, items: { type: 'integer' } },
      { type: 'string', not: { const: 'text' } },
      { type: 'integer', not: { enum: [1, 2] } },
      { type: 'integer', minimum: 1, not: { multipleOf: 2 }, maximum: 3 },
      {
        allOf: [
          { type: 'number', minimum: 2, multipleOf: 4 },
          { maximum: 40, multipleOf: 6 },
        ],
      },
      {
        type: 'object',
        properties: { kind: { const: 'x' } },
        required: ['kind'],
        if: { properties: { kind: { const: 'x' } } },
        // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
        then: { required: ['size'], properties: { size: { type: 'integer', minimum: 4 } } },
      },
      { type: 'object', properties: { a: { type: 'string' } }, dependentRequired: { a: ['b'] } },
      { type: 'object', properties: { a: {}, b: {} }, not: { required: ['a', 'b'] } },
      {
        type: 'object',
        patternProperties: { '^x-': { type: 'integer' } },
        additionalProperties: false,
        minProperties: 2,
      },
      { type: 'object', propertyNames: { pattern: '^[A-Z]{3}$' }, minProperties: 3 },
      {
        type: 'object',
        properties: JSON.parse('{"__proto__":{"type":"integer"},"constructor":{"type":"string"}}'),
        required: ['__proto__', 'constructor'],
      },
      { type: 'string', format: 'date', pattern: '^2025-' },
      { type: 'string', format: 'uri', minLength: 60 },
      { type: 'string', format: 'email', minLength: 30, maxLength: 40 },
      { type: 'string', pattern: '^(?=.*[A-Z])(?=.*\\d).{8,}$' },
      { type: 'string', pattern: '^[a-z]+$', minLength: 30, maxLength: 30 },
      { anyOf: [{ type: 'object', properties: { a: false }, required: ['a'] }, { type: 'integer' }] },
      { oneOf: [{ type: 'integer' }, { type: 'number', minimum: 5 }] },
    ]) {
      assertInstance(schema);
    }
  });

  it('exampleInstance uses a default or an example that fits, and skips one that does not', () => {
    assert.equal(exampleInstance({ type: 'string', default: 'blue' }), 'blue');
    assert.equal(exampleInstance({ type: 'string', examples: [4, 'green'] }), 'green');
    assert.deepEqual(exampleInstance({ type: 'object', properties: { city: { type: 'string' } } }), { city: 'city' });
  });

  it('exampleInstance rejects schemas without an instance, and terminates on schemas built to keep it busy', () => {
    for (const schema of [
      false,
      'string',
      { $ref: '#/nowhere' },
      { $ref: '#' },
      { type: 'string', pattern: '(' },
      { type: 'integer', minimum: 5, maximum: 4 },
      { type: 'object', properties: { self: { $ref: '#' } }, required: ['self'] },
      { type: 'array', items: { type: 'boolean' }, minItems: 3, uniqueItems: true },
      { type: 'string', minLength: 1e12 },
      { type: 'array', minItems: 1e12 },
      { type: 'string', pattern: '^(((a{999}){999}){999})$' },
      { type: 'object', minProperties: 1e12 },
    ]) {
      assert.throws(() => exampleInstance(schema), SchemaError, JSON.stringify(schema));
    }
  });
});

describe('patternTexts', () => {
  it('patternTexts yields only texts that match', () => {
    for (const pattern of [
      '^\\w+\\.(jpe?g|png)$',
      '\\bfoo\\b',
      '^[\\]\\-^]{3}$',
      '^\\u0041\\x42$',
      '^(?<year>\\d{4})$',
    ]) {
      const texts = [...patternTexts(pattern)];
      assert.ok(texts.length > 0, pattern);
      for (const text of texts) assert.match(text, new RegExp(pattern, 'u'));
    }
  });
});
