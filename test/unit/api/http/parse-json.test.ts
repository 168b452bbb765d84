import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { exceededLimit, parseJson } from '../../../../api/http/body/parse-json.ts';
import { ApiError } from '../../../../shared/errors.ts';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

/** JSON text of any value, with white space and escapes as other writers use them. */
const jsonText = fc
  .tuple(fc.jsonValue({ maxDepth: 12 }), fc.constantFrom(undefined, 1, '\t'), fc.boolean())
  .map(([value, indent, escaped]) => {
    const text = JSON.stringify(value, null, indent);
    const escaping = (letter: string): string => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`;
    return escaped ? text.replace(/[\u0080-\uffff]/g, escaping) : text;
  });

function depthOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(depthOf));
}

function refusal(body: Uint8Array): ApiError {
  try {
    parseJson(body);
  } catch (error) {
    assert(error instanceof ApiError);
    assert.equal(error.status, 400);
    assert.equal(error.toWire().error.code, 'invalid_request_error');
    assert.equal(error.cause, undefined, 'the parser quotes the body in its errors');
    return error;
  }
  throw new assert.AssertionError({ message: 'the body was accepted' });
}

const nested = (depth: number): string => `{"a":${'['.repeat(depth - 1)}${']'.repeat(depth - 1)}}`;

describe('parseJson', () => {
  it('parseJson agrees with JSON.parse about every object', () => {
    fc.assert(
      fc.property(jsonText, (text) => {
        const body = `{"value":${text}}`;
        // The one difference: keys that stand for a prototype.
        fc.pre(!/__proto__|constructor/.test(body));
        assert.deepEqual(parseJson(bytes(body)), JSON.parse(body));
      }),
    );
  });

  it('parseJson rejects exactly the text that JSON.parse rejects, without repeating it', () => {
    const broken = fc
      .tuple(jsonText, fc.nat(), fc.constantFrom('', '"', '{', ']', ',', '\\', 'secret'))
      .map(([text, at, insertion]) => {
        const body = `{"value":${text}}`;
        return body.slice(0, at % body.length) + insertion + body.slice((at % body.length) + 1);
      });
    fc.assert(
      fc.property(broken, (text) => {
        let expected: unknown;
        try {
          expected = JSON.parse(Buffer.from(text).toString());
        } catch {
          assert.doesNotMatch(refusal(bytes(text)).message, /secret/);
          return;
        }
        fc.pre(!/__proto__|constructor/.test(text) && typeof expected === 'object' && !Array.isArray(expected));
        assert.deepEqual(parseJson(bytes(text)), expected);
      }),
    );
  });

  it('exceededLimit finds the same depth as a recursive count, whatever the strings hold', () => {
    fc.assert(
      fc.property(jsonText, fc.nat(14), (text, limit) => {
        const exceeded = exceededLimit(bytes(text), { nesting: limit, values: Number.POSITIVE_INFINITY });
        assert.equal(exceeded === 'nesting', depthOf(JSON.parse(text)) > limit);
      }),
    );
  });

  it('parseJson accepts 64 levels of nesting and rejects 65, and rejects a million without parsing them', () => {
    assert.ok(parseJson(bytes(nested(64))));
    assert.match(refusal(bytes(nested(65))).message, /nested deeper than 64 levels/);
    assert.match(refusal(bytes('['.repeat(1_000_000))).message, /nested/);
    assert.match(refusal(bytes('{"a":'.repeat(1_000_000))).message, /nested/);
  });

  it('parseJson ignores brackets inside strings, also after escaped quotes and backslashes', () => {
    const text = JSON.stringify({ a: `"${'['.repeat(100)}\\`, b: `\\"${'{'.repeat(100)}` });
    assert.deepEqual(parseJson(bytes(text)), JSON.parse(text));
  });

  it('parseJson rejects a body of millions of tiny values before parsing it', () => {
    assert.match(refusal(bytes(`{"a":[${'{},'.repeat(1_000_001)}0]}`)).message, /more than 2000000 values/);
    assert.match(refusal(bytes(`{"a":[${'0,'.repeat(2_000_001)}0]}`)).message, /more than 2000000 values/);
  });

  it('parseJson rejects __proto__ keys at any depth, however they are escaped', () => {
    const keys = ['__proto__', '\\u005f_proto__', '\\u005F\\u005f\\u0070roto__', '__pr\\u006fto__'];
    for (const key of keys) {
      for (const body of [`{"${key}":1}`, `{"a":[{"b":{"${key}":{}}}]}`]) {
        assert.match(refusal(bytes(body)).message, /'__proto__'/, body);
      }
    }
  });

  it('parseJson rejects constructor.prototype, and accepts both words in harmless positions', () => {
    assert.match(refusal(bytes('{"a":{"constructor":{"prototype":{}}}}')).message, /constructor\.prototype/);
    assert.match(refusal(bytes('{"c\\u006fnstructor":{"prot\\u006ftype":1}}')).message, /constructor\.prototype/);
    const harmless = '{"a":"__proto__ and \\u005f","constructor":"x","b":{"prototype":{}},"c":["__proto__"]}';
    assert.deepEqual(parseJson(bytes(harmless)), JSON.parse(harmless));
  });

  it('parseJson rejects an empty body and anything but an object', () => {
    assert.match(refusal(bytes('')).message, /empty/);
    assert.match(refusal(bytes('  ')).message, /not valid JSON/);
    for (const text of ['[]', '"text"', '1', 'null', 'true']) assert.match(refusal(bytes(text)).message, /JSON object/);
  });

  it('parseJson rejects invalid UTF-8 and tolerates a byte order mark', () => {
    const text = bytes('{"a":"b"}');
    for (const wrong of [[0xff], [0xc3, 0x28], [0xed, 0xa0, 0x80], [0xc0, 0xaf]]) {
      const body = Uint8Array.from([...text.slice(0, 6), ...wrong, ...text.slice(6)]);
      assert.match(refusal(body).message, /not valid UTF-8/);
    }
    assert.deepEqual(parseJson(Uint8Array.from([0xef, 0xbb, 0xbf, ...text])), { a: 'b' });
  });
});
