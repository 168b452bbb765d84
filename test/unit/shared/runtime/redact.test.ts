import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { withoutKeys } from '../../../../shared/runtime/redact.ts';

describe('keys in messages', () => {
  test('withoutKeys replaces keys by their stars, their beginning, their place or their looks, and nothing else', () => {
    const mixed = 'Ab3'.repeat(9);
    for (const [text, shown] of [
      ['Incorrect API key provided: sk-ab***yz.', 'Incorrect API key provided: [key]'],
      ['key ab.c****, then d**e', 'key [key], then d**e'],
      ['ab**cd***ef', 'ab**[key]'],
      ['it begins with sk-0123456789abcdef', 'it begins with [key]'],
      ['Bearer abcdefgh, bearer  short', 'Bearer [key], bearer  short'],
      [`the key ${mixed} is unknown`, 'the key [key] is unknown'],
      [`(${mixed}-${mixed})`, '([key])'],
      [`${'f0'.repeat(16)}`, '[key]'],
      ['claude-sonnet-4-5-20250929 of 2026-11-30', 'claude-sonnet-4-5-20250929 of 2026-11-30'],
    ] as const) {
      assert.equal(withoutKeys(text), shown, text);
    }
  });

  test('withoutKeys reads a long text once: one that is read from each character would take minutes', () => {
    for (const word of ['z', 'z-', 'Z-', '-', '.', '**z', ' ', 'Bearer ']) {
      const text = word.repeat(Math.floor(300_000 / word.length));
      assert.ok(withoutKeys(text) === text, word);
    }
  });
});
