import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { mistakeAt, mistakePosition } from '../../../../api/http/body/json-mistake.ts';

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

describe('mistakePosition', () => {
  it('mistakePosition returns the line and column of the first invalid character', () => {
    for (const [text, place] of [
      ['{"a": b}', 'at line 1, column 7'],
      ['{"a": 1,}', 'at line 1, column 9'],
      ['{\n  "a": 1\n  "b": 2\n}', 'at line 3, column 3'],
      ["{'a': 1}", 'at line 1, column 2'],
      ['{"a": 01}', 'at line 1, column 8'],
      ['{"a": "line\nbreak"}', 'at line 1, column 12'],
      ['{"a": "\\x"}', 'at line 1, column 8'],
      ['{"a": tru}', 'at line 1, column 7'],
      ['{"a": [1, 2}', 'at line 1, column 12'],
      ['{} {}', 'at line 1, column 4'],
      ['{"a": "no end', 'at its end: it is not complete'],
      ['{"a": [1, {', 'at its end: it is not complete'],
      ['  ', 'at its end: it is not complete'],
    ] as const) {
      assert.equal(isJson(text), false, text);
      assert.equal(mistakePosition(text), place, text);
    }
  });

  it('mistakeAt returns the end of every valid JSON text, and otherwise a position that valid JSON could reach', () => {
    const broken = fc
      .tuple(fc.json({ maxDepth: 8 }), fc.nat(), fc.constantFrom('', '"', '{', ']', ',', '\\', 'x', '\n', '-', '.'))
      .map(([text, at, letter]) => text.slice(0, at % text.length) + letter + text.slice((at % text.length) + 1));
    fc.assert(
      fc.property(fc.oneof(fc.json({ maxDepth: 8 }), broken), (text) => {
        const at = mistakeAt(text);
        if (isJson(text)) assert.equal(at, text.length);
        // Whatever ends before the mistake can still become JSON; with the character there nothing can.
        else assert.ok(at <= text.length && couldGoOn(text.slice(0, at)), `${at} of ${text}`);
      }),
      { numRuns: 500 },
    );
  });
});

/** Whether V8, too, finds no mistake in a beginning but that it ends. */
function couldGoOn(beginning: string): boolean {
  try {
    JSON.parse(beginning);
    return true;
  } catch (error) {
    return /Unexpected end|Unterminated|in JSON at position (\d+)/.test(String(error)) && endsThere(error, beginning);
  }
}

function endsThere(error: unknown, text: string): boolean {
  const [, position] = /at position (\d+)/.exec(String(error)) ?? [];
  return position === undefined || Number(position) >= text.length;
}
