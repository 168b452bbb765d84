import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BodyShares } from '../../../../api/bounds/body-shares.ts';
import { MessageIntake } from '../../../../api/endpoints/messages/message-intake.ts';
import { largeBytes } from '../../../../api/http/body/read-body.ts';

test('a message that is done after its socket was closed holds no place of its key', () => {
  const owner = { account: 'account', apiKeyId: 'key' };
  const shares = new BodyShares({ bytes: 100 * largeBytes, bodies: 1, what: 'requests' });
  const intake = new MessageIntake(shares, owner, {
    onLarge: () => undefined,
    onRefused: (error) => assert.fail(String(error)),
  });
  intake.came(2 * largeBytes);
  intake.whole(2 * largeBytes);
  intake.whole(10);
  intake.close();
  intake.done(10);
  assert.equal(shares.total, 0);
  shares.open(owner).close();
});
