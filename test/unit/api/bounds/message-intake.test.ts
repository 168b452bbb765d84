import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BodyShares } from '../../../../api/bounds/body-shares.ts';
import { MessageIntake } from '../../../../api/endpoints/messages/message-intake.ts';
import { largeBytes } from '../../../../api/http/body/read-body.ts';

const owner = { account: 'account', apiKeyId: 'key' };

/** Fragments of a byte, as a client sends them, masked with zeros. @param last the first byte of the last one */
function fragments(count: number, last = 0x00): Buffer {
  const firsts: number[] = Array.from({ length: count }, (_, index) => (index === 0 ? 0x01 : 0x00));
  firsts[count - 1] = last;
  return Buffer.concat(firsts.map((first) => Buffer.from([first, 0x81, 0, 0, 0, 0, 0x61])));
}

test('a message in fragments of a byte counts as what they take in memory until it is whole, wherever its bytes are cut', () => {
  for (const cut of [1, 3, 8, 1000, 64 * 1024]) {
    const shares = new BodyShares({ bytes: 1000 * largeBytes, bodies: 1, what: 'requests' });
    const intake = new MessageIntake(shares, owner, {
      onLarge: () => undefined,
      onRefused: (error) => assert.fail(String(error)),
    });
    const read = (bytes: Buffer): void => {
      for (let at = 0; at < bytes.length; at += cut) intake.came(bytes.subarray(at, at + cut));
    };
    read(fragments(9000));
    assert.ok(shares.total > 16 * largeBytes, `${shares.total} bytes are counted, in pieces of ${cut}`);
    // A ping between, a long fragment, and the last one; behind it the next message begins.
    const long = Buffer.concat([Buffer.from([0x00, 0xfe, 0x01, 0x00, 0, 0, 0, 0]), Buffer.alloc(256)]);
    read(Buffer.concat([Buffer.from([0x89, 0x80, 0, 0, 0, 0]), long, fragments(1, 0x80), fragments(10)]));
    intake.whole(9257);
    assert.equal(shares.total, 0, `in pieces of ${cut}`);
    read(fragments(9000).subarray(7));
    assert.ok(shares.total > 16 * largeBytes, 'the next message counts, too');
    intake.close();
    assert.equal(shares.total, 0);
  }
});

test('messages that have come whole, however many at once, are not large ones', () => {
  const shares = new BodyShares({ bytes: 1000 * largeBytes, bodies: 1, what: 'requests' });
  const intake = new MessageIntake(shares, owner, {
    onLarge: () => assert.fail('none is large'),
    onRefused: (error) => assert.fail(String(error)),
  });
  intake.came(Buffer.concat(Array.from({ length: 9000 }, () => fragments(1, 0x81))));
  assert.equal(shares.total, 0);
});

test('a message that is done after its socket was closed holds no place of its key', () => {
  const shares = new BodyShares({ bytes: 100 * largeBytes, bodies: 1, what: 'requests' });
  const intake = new MessageIntake(shares, owner, {
    onLarge: () => undefined,
    onRefused: (error) => assert.fail(String(error)),
  });
  // One fragment, of which the mask is zeros.
  const head = Buffer.from([0x81, 0xff, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0]);
  intake.came(Buffer.concat([head, Buffer.alloc(2 * largeBytes)]));
  intake.whole(2 * largeBytes);
  intake.whole(10);
  intake.close();
  intake.done(10);
  assert.equal(shares.total, 0);
  shares.open(owner).close();
});
