import assert from 'node:assert/strict';
import { test } from 'node:test';
import { makeSignature } from 'better-auth/crypto';
import { SessionTurns } from '../../../../api/management/sign-in/session-turns.ts';
import { ApiError } from '../../../../shared/errors.ts';
import { withResolvers } from '../../../support/with-resolvers.ts';

const secret = Buffer.alloc(32, 7);

/** A session's cookie as better-auth signs it. */
async function cookieOf(token: string, key = secret): Promise<string> {
  const signature = await makeSignature(token, key.toString('hex'));
  return `theme=dark; sluice.session_token=${encodeURIComponent(`${token}.${signature}`)}`;
}

const codeOf = (error: unknown): string => (error instanceof ApiError ? error.code : String(error));

/** Look-ups that do not end before they are let go, and the order in which they began. */
function heldLookUps() {
  const { promise, resolve } = withResolvers();
  const begun: string[] = [];
  const turns = new SessionTurns(() => secret);
  const lookUp = (name: string, cookies: string): Promise<string> =>
    turns.run(cookies, async () => {
      begun.push(name);
      await promise;
      return name;
    });
  return { begun, lookUp, letGo: resolve };
}

test('a session with a thousand look-ups at a time is refused most of them, and another one has the next turn', async () => {
  const { begun, lookUp, letGo } = heldLookUps();
  const [cookiesOfMany, cookiesOfOne] = [await cookieOf('token-of-many'), await cookieOf('token-of-one')];
  const many = Promise.all(
    Array.from({ length: 1000 }, () => lookUp('many', cookiesOfMany).catch((error) => codeOf(error))),
  );
  const one = lookUp('one', cookiesOfOne);
  assert.deepEqual(new Set(begun), new Set(['many']));
  const running = begun.length;
  letGo();
  assert.equal(await one, 'one');
  assert.equal(begun.indexOf('one'), running, 'it waits for nothing but what ran');
  const outcomes = await many;
  assert.deepEqual(new Set(outcomes), new Set(['many', 'rate_limit_exceeded']));
  assert.ok(outcomes.filter((outcome) => outcome === 'many').length < 150);
});

test('invented sessions have one turn together: their signatures are wrong', async () => {
  const { begun, lookUp, letGo } = heldLookUps();
  const wrong = Buffer.alloc(32, 8);
  const given = Array.from({ length: 500 }, (_, index) =>
    index % 2 === 0 ? cookieOf(`token${index}`, wrong) : `sluice.session_token=%E0${index}`,
  );
  const cookiesOfOne = (await cookieOf('token-of-one')).replace('sluice.', '__Secure-sluice.');
  const cookies = await Promise.all(given);
  const invented = Promise.all(cookies.map((each) => lookUp('invented', each).catch((error) => codeOf(error))));
  const one = lookUp('one', cookiesOfOne);
  const running = begun.length;
  letGo();
  assert.equal(await one, 'one');
  assert.equal(begun.indexOf('one'), running);
  await invented;
});

test('a look-up that fails is a 503, and the next one has its place', async () => {
  const turns = new SessionTurns(() => secret);
  const cookies = await cookieOf('token');
  for (let failures = 0; failures < 20; failures++) {
    const failing = turns.run(cookies, () => Promise.reject(new Error('the database is away')));
    await assert.rejects(failing, (error) => codeOf(error) === 'service_unavailable');
  }
  assert.equal(await turns.run(cookies, async () => 'found'), 'found');
});
