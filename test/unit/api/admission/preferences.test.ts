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
