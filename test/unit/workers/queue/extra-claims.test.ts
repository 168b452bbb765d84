import assert from 'node:assert/strict';
import { it } from 'node:test';
import { dominantOf } from '../../../../workers/queue/extra-claims.ts';

const claims = (...accounts: (string | undefined)[]) => accounts.map((account) => ({ account }));

it('an account is dominant if it has more than half of the claims', () => {
  assert.equal(dominantOf(claims('a', 'b', 'a')), 'a');
  assert.equal(dominantOf(claims('b', 'a', 'c', 'a', 'a')), 'a');
  for (const none of [claims(), claims('a', 'b'), claims('a', 'a', 'b', 'c'), claims(undefined, undefined, 'a')]) {
    assert.equal(dominantOf(none), undefined);
  }
});
