import assert from 'node:assert/strict';
import { it } from 'node:test';
import { executeTokenCount } from '../../../workers/execute/execute-message.ts';
import type { Vendor } from '../../../workers/vendors/vendor.ts';
import { madeUpModel } from '../../support/routed-model.ts';
import { callOf, collect } from '../contracts/fixture-vendor.ts';

const row = madeUpModel({ id: 'm', capability: 'chat' });
const vendor = { name: 'any', close: () => Promise.resolve() } as Vendor;

/** Counts the tokens of a message of an account. */
async function count(account: string, content: string, signal = new AbortController().signal): Promise<number> {
  const request = JSON.stringify({ messages: [{ role: 'user', content }] });
  const call = callOf({ model: 'm', stream: false, request, holder: { job: { account } }, signal });
  const endpoint = 'messages.count_tokens';
  const { body } = await executeTokenCount({ vendor, row, endpoint, keep: false, call, sink: collect() });
  return (JSON.parse(body as string) as { input_tokens: number }).input_tokens;
}

it('a count of tokens waits for one of another account at most, however many that has asked for', async () => {
  const ended: string[] = [];
  const ask = (account: string, content: string): Promise<unknown> =>
    count(account, content).then(() => ended.push(account));
  const counts = Array.from({ length: 6 }, () => ask('many', 'a word and another. '.repeat(5000)));
  counts.push(ask('one', 'Hello'));
  await Promise.all(counts);
  assert.deepEqual(ended, ['many', 'one', 'many', 'many', 'many', 'many', 'many']);
});

it('a count of tokens that is given up while it waits leaves its turn to the next', async () => {
  const left = new AbortController();
  const first = count('a', 'a word and another. '.repeat(5000));
  const waiting = count('b', 'Hello', left.signal);
  left.abort();
  await assert.rejects(waiting, { code: 'cancelled' });
  assert.ok((await first) > 10_000);
  assert.ok((await count('b', 'Hello')) > 0);
});
