import assert from 'node:assert/strict';
import { it } from 'node:test';
import fc from 'fast-check';
import { isBase64 as isBase64Text } from '../../../workers/vendors/openai/base64-text.ts';

/** Whether it is base64, which its bytes are asked, too. */
function isBase64(text: string): boolean {
  const found = isBase64Text(text);
  assert.equal(isBase64Text(Buffer.from(text)), found, JSON.stringify(text.slice(0, 100)));
  return found;
}

it('base64 in either alphabet is told from anything else, wherever that stands in a long text', () => {
  assert.ok(isBase64(''));
  assert.ok(isBase64('-_-_'));
  const long = Buffer.alloc(200_000, 'lighthouse').toString('base64');
  assert.ok(isBase64(long));
  for (const foreign of ['"', '\\', '\n', ' ', '!', '=', '\x00', 'ä', 'é'.repeat(4)]) {
    for (const at of [0, 5, 65_535, 65_536, 131_072, long.length - 3]) {
      const broken = long.slice(0, at) + foreign + long.slice(at);
      assert.equal(isBase64(broken), false, `${JSON.stringify(foreign)} at ${at}`);
      const replaced = long.slice(0, at) + foreign + long.slice(at + foreign.length);
      assert.equal(isBase64(replaced), false, `${JSON.stringify(foreign)} in place of ${at}`);
    }
  }
});

it('whatever passes for base64 has no character that JSON would have to escape', () => {
  const piece = fc.oneof(
    fc.base64String(),
    fc.string({ unit: 'binary', maxLength: 3 }),
    fc.constantFrom('=', '==', '\\', '"'),
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 6 }), (pieces) => {
      const text = Buffer.from(pieces.join('')).toString('latin1');
      if (isBase64(text)) assert.match(text, /^[A-Za-z0-9+/_-]*={0,2}$/);
    }),
    { numRuns: 20_000 },
  );
  fc.assert(fc.property(fc.uint8Array({ maxLength: 400 }), (bytes) => isBase64(Buffer.from(bytes).toString('base64'))));
});
