import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cacheMsOf, readPreferences } from '../../../../api/admission/preferences.ts';

const cacheMs = (header: string | undefined, cacheSeconds: number | undefined): number =>
  cacheMsOf(readPreferences(header === undefined ? {} : { 'x-sluice-cache': header }), { cacheSeconds });

test('the age of a cached answer is what the header allows, or else the key; 0 in the header means none', () => {
  assert.equal(cacheMs(undefined, undefined), 0);
  assert.equal(cacheMs(undefined, 60), 60_000);
  assert.equal(cacheMs('5', 60), 5000);
  assert.equal(cacheMs('3600', 60), 3_600_000);
  assert.equal(cacheMs('5', undefined), 5000);
  for (const zero of ['0', '00', '000000']) assert.equal(cacheMs(zero, 60), 0);
});

test('an age that the header cannot have is refused, whatever the key allows', () => {
  assert.equal(cacheMs('604800', undefined), 604_800_000);
  for (const age of ['604801', '-1', '1.5', '', '0000000']) {
    assert.throws(() => cacheMs(age, 60), { code: 'invalid_request_error', param: 'X-Sluice-Cache' });
  }
});

/** What is read of the header Prefer: whether the answer may come later, after how many seconds, and whether a quote is wanted. */
const preferred = (prefer: string): readonly [boolean, number, boolean] => {
  const { respondAsync, waitMs, quote } = readPreferences({ prefer });
  return [respondAsync, waitMs / 1000, quote];
};

test('preferences may have parameters, quoted values and neighbours that are unknown', () => {
  assert.deepEqual(preferred('respond-async'), [true, 0, false]);
  for (const prefer of [
    ...['respond-async; lang=en, wait=10', 'wait = "10";a;b="x, y"', 'Respond-Async=""; x, WAIT=10;y=1'],
    ...['handling=lenient, wait=10', 'foo="\\"bar, wait=9", wait=10', 'wait=10, wait=20', ',, respond-async ,wait=10,'],
  ]) {
    assert.deepEqual(preferred(prefer), [true, 10, false], prefer);
  }
  assert.deepEqual(preferred('quote;a=b'), [false, 0, true]);
});

test('what is inside a quoted value, or has a value that it cannot have, is no preference', () => {
  for (const prefer of [
    ...[
      'foo="respond-async, wait=5, quote"',
      'foo; respond-async; wait=5; quote',
      'wait=-1',
      'wait=1.5',
      'wait=',
      'wait',
      'wait="10',
    ],
    ...['respond-async=no', 'foo="a, wait=5', 'x-respond-async', '"respond-async"', '', ';', '=', '"', '\\"'],
  ]) {
    assert.deepEqual(preferred(prefer), [false, 0, false], prefer);
  }
});

test('a wait of any length is a wait, of a day at most', () => {
  assert.deepEqual(preferred('wait=0'), [true, 0, false]);
  assert.deepEqual(preferred('wait=86401'), [true, 86_400, false]);
  assert.deepEqual(preferred(`wait=${'9'.repeat(400)}`), [true, 86_400, false]);
  for (const part of [',', ';', '"', '\\', '="', '";', '",']) readPreferences({ prefer: part.repeat(8000) });
});
