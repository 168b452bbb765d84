import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { toMessageRequest } from '../../../workers/vendors/anthropic/request.ts';
import { createVendor } from '../../../workers/vendors/registry.ts';
import { vendorSettings } from '../../support/vendor-settings.ts';
import { callOf, collect, sendJson, startFixtureVendor } from '../contracts/fixture-vendor.ts';

type Fields = Record<string, unknown>;

const text = { type: 'string' };
const orNull = { type: ['string', 'null'] };
const either = { anyOf: [text, { type: 'null' }] };

/** So many properties of one schema. */
function properties(count: number, schema: Fields): Fields {
  return Object.fromEntries(Array.from({ length: count }, (_, at) => [`p${at}`, schema]));
}
/** An object that requires all of its properties. */
function whole(given: Fields): Fields {
  return { type: 'object', properties: given, required: Object.keys(given), additionalProperties: false };
}
/** An object that requires none of them. */
function loose(given: Fields): Fields {
  return { type: 'object', properties: given, additionalProperties: false };
}
function toolOf(name: string, parameters: Fields, strict = true): Fields {
  return { type: 'function', function: { name, parameters, strict } };
}
function toolsOf(count: number, parameters: Fields, strict = true): Fields[] {
  return Array.from({ length: count }, (_, at) => toolOf(`f${at}`, parameters, strict));
}

function sentFor(tools: readonly Fields[], more: Fields = {}): Fields[] {
  const request = JSON.stringify({ messages: [{ role: 'user', content: 'Hi' }], tools, ...more });
  return JSON.parse(toMessageRequest({ model: 'claude-opus-5-5', stream: false, request })).tools;
}

/** Names of the tools that Anthropic gets as strict ones. */
function strictNames(tools: readonly Fields[], more: Fields = {}): unknown[] {
  return sentFor(tools, more)
    .filter(({ strict }) => strict !== undefined)
    .map(({ name }) => name);
}

describe('strict tools at Anthropic', () => {
  it('no tool is strict where there are more strict ones, optional properties or unions than Anthropic takes', () => {
    const nested = (count: number, schema: Fields): Fields =>
      whole({ list: { type: 'array', items: { allOf: [whole({ in: whole(properties(count, schema)) })] } } });
    const defined = (count: number): Fields => ({
      ...whole({ a: { $ref: '#/$defs/a' } }),
      $defs: { a: loose(properties(count, text)) },
    });
    const cases: [string, most: Fields[], more: Fields[]][] = [
      ['tools', toolsOf(20, whole({})), toolsOf(21, whole({}))],
      ['optional', toolsOf(2, loose(properties(12, text))), toolsOf(5, loose(properties(5, text)))],
      ['optional in a definition', [toolOf('f', defined(24))], [toolOf('f', defined(25))]],
      ['types', toolsOf(2, whole(properties(8, orNull))), toolsOf(1, whole(properties(17, orNull)))],
      ['anyOf', toolsOf(4, whole(properties(4, either))), toolsOf(3, whole(properties(6, either)))],
      ['oneOf', [toolOf('f', whole(properties(16, { oneOf: [text] })))], [toolOf('f', nested(17, { oneOf: [text] }))]],
      ['nested', [toolOf('f', nested(16, orNull))], [toolOf('f', nested(17, orNull))]],
    ];
    for (const [name, most, more] of cases) {
      assert.equal(strictNames(most).length, most.length, name);
      assert.deepEqual(strictNames(more), [], name);
    }
  });

  it('tools that are strict no more keep the schema that their caller gave', () => {
    const parameters = whole({ ...properties(17, orNull), count: { type: 'integer', minimum: 1 } });
    assert.deepEqual(sentFor([toolOf('f', parameters)]), [{ name: 'f', input_schema: parameters }]);
  });

  it('tools that are not strict, or not among the allowed ones, do not count', () => {
    const strict = toolOf('strict', whole(properties(16, orNull)));
    const other = toolOf('other', whole(properties(16, orNull)));
    assert.deepEqual(strictNames([strict, ...toolsOf(30, loose(properties(9, orNull)), false)]), ['strict']);
    const names = [{ type: 'function', function: { name: 'strict' } }];
    const choice = { type: 'allowed_tools', allowed_tools: { mode: 'auto', tools: names } };
    assert.deepEqual(strictNames([strict, other], { tool_choice: choice }), ['strict']);
    assert.deepEqual(strictNames([strict, other]), []);
  });

  it("the answer's schema counts, too", () => {
    const strict = toolOf('f', whole(properties(16, orNull)));
    const formatOf = (schema: Fields): Fields => ({
      response_format: { type: 'json_schema', json_schema: { name: 'a', schema } },
    });
    assert.deepEqual(strictNames([strict], formatOf(whole(properties(9, text)))), ['f']);
    assert.deepEqual(strictNames([strict], formatOf(whole({ a: orNull }))), []);
  });

  it('a schema that is nested beyond all use, or is no schema, is counted without harm', () => {
    let deep: Fields = orNull;
    for (let level = 0; level < 1000; level++) deep = { type: 'array', items: deep };
    assert.deepEqual(strictNames([toolOf('f', whole({ deep }))]), ['f']);
    const odd = { type: 'object', properties: { a: 1, b: null }, required: { a: 'b' }, anyOf: 5, $defs: [] };
    assert.deepEqual(strictNames([toolOf('f', odd)]), ['f']);
  });
});

describe('schemas of tools with a union at their root, which Anthropic refuses', () => {
  const schemaSent = (parameters: Fields): Fields =>
    sentFor([toolOf('f', parameters, false)])[0]?.input_schema as Fields;
  const branch = (kind: string, ...required: string[]): Fields => ({
    type: 'object',
    properties: { kind: { const: kind }, [required[0] ?? 'x']: text },
    required: ['kind', ...required],
  });

  it('the properties of its branches are those of the tool, and the union is told in its description', () => {
    const union = [branch('file', 'path'), { $ref: '#/$defs/dir' }];
    const $defs = { dir: branch('dir', 'root') };
    for (const keyword of ['anyOf', 'oneOf']) {
      const sent = schemaSent({
        description: 'Reads.',
        properties: { all: { type: 'boolean' } },
        [keyword]: union,
        $defs,
      });
      assert.deepEqual(sent, {
        type: 'object',
        description: `Reads.\n\n${JSON.stringify({ [keyword]: union })}`,
        properties: {
          all: { type: 'boolean' },
          kind: { anyOf: [{ const: 'file' }, { const: 'dir' }] },
          path: text,
          root: text,
        },
        required: ['kind'],
        $defs,
      });
    }
  });

  it('what all parts of an intersection require stays required, and what one choice alone does not', () => {
    const given = {
      type: 'object',
      properties: { a: text, b: text },
      required: ['a'],
      allOf: [{ required: ['b'] }],
      anyOf: [{ required: ['c'] }, { required: ['d'] }, 7],
    };
    const { properties, required, allOf, anyOf } = schemaSent(given);
    assert.deepEqual([properties, required, allOf, anyOf], [given.properties, ['a', 'b'], undefined, undefined]);
  });

  it('the properties of a union inside of a branch are those of the tool, too', () => {
    const choice = { oneOf: [branch('file', 'path'), { $ref: '#/$defs/both' }] };
    const both = {
      allOf: [branch('dir', 'root'), { properties: { deep: { type: 'boolean' } } }, { $ref: '#/$defs/both' }],
    };
    const { properties, required } = schemaSent({
      type: 'object',
      allOf: [{ required: ['kind'] }, choice],
      $defs: { both },
    });
    assert.deepEqual(properties, {
      kind: { anyOf: [{ const: 'file' }, { const: 'dir' }] },
      path: text,
      root: text,
      deep: { type: 'boolean' },
    });
    assert.deepEqual(required, ['kind']);
  });

  it('a union of very many references to one definition of as many properties has them once', () => {
    const properties = Object.fromEntries(Array.from({ length: 10_000 }, (_, at) => [`p${at}`, {}]));
    const many = { properties, required: Object.keys(properties) };
    for (const keyword of ['anyOf', 'oneOf', 'allOf']) {
      const union = Array.from({ length: 10_000 }, () => ({ $ref: '#/$defs/many' }));
      const sent = schemaSent({ type: 'object', $defs: { many }, [keyword]: union });
      assert.deepEqual([sent.properties, sent.required], [properties, many.required]);
    }
  });

  it('a schema without one, or with one inside, is sent as it is', () => {
    const inner = { type: 'object', properties: { a: { anyOf: [text, { type: 'null' }] } }, required: ['a'] };
    assert.deepEqual(schemaSent(inner), inner);
    assert.deepEqual(schemaSent({ ...inner, anyOf: 5 }), { ...inner, anyOf: 5 });
  });
});

describe('strict tools that Claude refuses by the size of their grammar', () => {
  const grammar =
    'The compiled grammar is too large, which would cause performance issues. Simplify your tool schemas or reduce the number of strict tools.';
  const vendors = [
    { name: 'anthropic', model: 'claude-opus-4-5', key: 'a-key', before: '' },
    {
      ...{ name: 'bedrock', model: 'anthropic.claude-opus-4-5-20251101-v1:0', key: 'AKIAEXAMPLE:a-secret-key' },
      before: 'The model returned the following errors: ',
    },
  ];

  /** Whether the tools of each request were strict, and the end of a call of a vendor that refuses those which are. */
  async function ask(
    { name, model, key, before }: (typeof vendors)[number],
    { tools, stream = false, message = grammar }: { tools: Fields[]; stream?: boolean; message?: string },
  ): Promise<{ strict: boolean[]; error: unknown }> {
    const server = await startFixtureVendor();
    const vendor = createVendor(name, vendorSettings(name, server.baseUrl, key), key);
    const told = `${before}${message}`;
    const refusal =
      name === 'anthropic'
        ? { type: 'error', error: { type: 'invalid_request_error', message: told } }
        : { message: told };
    const whole =
      name === 'anthropic'
        ? { type: 'message', content: [{ type: 'text', text: 'Hi' }], stop_reason: 'end_turn', usage: {} }
        : { output: { message: { role: 'assistant', content: [{ text: 'Hi' }] } }, stopReason: 'end_turn' };
    server.answer((response, { body }) => {
      const isRefused = body.includes('"strict":true') || message !== grammar || server.requests.length > 2;
      sendJson(response, isRefused ? 400 : 200, JSON.stringify(isRefused ? refusal : whole));
    });
    const request = JSON.stringify({ messages: [{ role: 'user', content: 'Hi' }], tools });
    const error = await vendor.chat?.(callOf({ model, stream, request }), collect()).then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    await vendor.close();
    await server.close();
    return { strict: server.requests.map(({ body }) => body.includes('"strict":true')), error };
  }

  it('they are offered once more without being strict, streamed and not, at Anthropic and Bedrock', async () => {
    for (const vendor of vendors) {
      for (const stream of [false, true]) {
        const { strict, error } = await ask(vendor, { tools: [toolOf('f', whole({ a: text }))], stream });
        assert.deepEqual([strict, error], [[true, false], undefined], vendor.name);
      }
    }
  });

  it('another refusal, or one of tools that are not strict, is the answer', async () => {
    for (const vendor of vendors) {
      const other = await ask(vendor, { tools: [toolOf('f', whole({ a: text }))], message: 'tools.0: Invalid name' });
      assert.deepEqual(other.strict, [true]);
      assert.equal((other.error as Fields).code, 'invalid_request_error');
      const loosely = await ask(vendor, { tools: [toolOf('f', whole({ a: text }), false)], message: `${grammar} ` });
      assert.deepEqual(loosely.strict, [false]);
      assert.match(String(loosely.error), /compiled grammar is too large/);
    }
  });
});
