import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { cacheAffinity } from '../../../../shared/capabilities/chat.ts';

const system = { role: 'system', content: 'You are a helpful assistant. '.repeat(100) };
const user = { role: 'user', content: 'Hello' };

describe('the affinity of a request', () => {
  it('the turns of one conversation have the affinity of its first one', () => {
    const turn = fc.record({ role: fc.constantFrom('assistant', 'user', 'tool'), content: fc.string() });
    fc.assert(
      fc.property(fc.array(turn), (more) => {
        assert.equal(cacheAffinity(undefined, [system, user, ...more]), cacheAffinity(undefined, [system, user]));
      }),
    );
  });

  it('conversations that begin otherwise have another affinity', () => {
    const texts = new Set<string>();
    for (let index = 0; index < 1000; index++) {
      texts.add(cacheAffinity(undefined, [system, { role: 'user', content: `Hello ${index}` }]));
      texts.add(cacheAffinity(undefined, [{ ...system, content: `${system.content}${index}` }, user]));
      texts.add(cacheAffinity(undefined, [user], `Instructions ${index}`));
      texts.add(cacheAffinity(undefined, [{ role: 'user', content: [{ type: 'text', text: `Part ${index}` }] }]));
    }
    assert.equal(texts.size, 4000);
  });

  it('a prompt_cache_key decides alone', () => {
    assert.equal(cacheAffinity('mine', [system, user]), cacheAffinity('mine', [user]));
    assert.notEqual(cacheAffinity('mine', [user]), cacheAffinity('yours', [user]));
  });

  it('anything at all has an affinity of a few characters', () => {
    fc.assert(
      fc.property(fc.anything(), fc.array(fc.record({ role: fc.anything(), content: fc.anything() })), (key, turns) => {
        assert.match(cacheAffinity(key, turns, key), /^[kt][0-9a-z]{1,7}$/);
      }),
    );
  });
});
