import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { type FixtureVendor, sendJson } from '../vendors/contracts/fixture-vendor.ts';
import { errorBody } from '../vendors/recorded/recorded-openai.ts';
import { chatModel, ScriptedRoutes, startServers } from './scripted-routes.ts';

describe('the outcome of a call in the metrics', () => {
  let server: FixtureVendor;
  let scripted: ScriptedRoutes;
  beforeEach(async () => {
    [server] = (await startServers(1)) as [FixtureVendor];
    scripted = new ScriptedRoutes({ one: { server } }, [chatModel([{ vendor: 'one', model: 'm' }])], { attempts: 1 });
  });
  afterEach(async () => {
    await scripted.close();
    await server.close();
  });

  const counted = async (): Promise<string[]> => {
    const page = await scripted.registry.metrics();
    return [...page.matchAll(/^sluice_vendor_calls_total\{vendor="one",outcome="(\w+)"\} (\d+)$/gm)].map(
      ([, outcome, count]) => `${outcome} ${count}`,
    );
  };

  test('a request that the vendor finds fault with is rejected, and no failure of the vendor', async () => {
    server.answer((response) => sendJson(response, 400, errorBody('no', 'code')));
    for (let calls = 0; calls < 3; calls++) await assert.rejects(scripted.run().answer);
    const tooLarge = errorBody('Request too large for m in organization o on tokens per min (TPM): Limit 1', 'tokens');
    server.answer((response) => sendJson(response, 429, tooLarge));
    await assert.rejects(scripted.run().answer);
    assert.deepEqual(await counted(), ['rejected 4']);
  });

  test('a call whose caller has left is cancelled, and one that its job has waited for in vain is a failure', async () => {
    const seen = () => new Promise<void>((resolve) => server.answer(() => resolve()));
    for (const [reason, expected] of [
      ['ended', ['cancelled 1']],
      ['requeued', ['cancelled 2']],
      ['overdue', ['cancelled 2', 'failed 1']],
    ] as const) {
      const leaving = new AbortController();
      const isSeen = seen();
      const { answer } = scripted.run({ signal: leaving.signal });
      await isSeen;
      leaving.abort(reason);
      await assert.rejects(answer);
      assert.deepEqual(await counted(), expected, reason);
    }
  });

  test('a vendor that does not begin to answer in time fails', async () => {
    await scripted.close();
    const route = { vendor: 'one', model: 'm', firstByteMs: 50 };
    scripted = new ScriptedRoutes({ one: { server } }, [chatModel([route])], { attempts: 1 });
    server.answer(() => undefined);
    await assert.rejects(scripted.run({ stream: true }).answer, /did not begin to answer within 50 ms/);
    assert.deepEqual(await counted(), ['failed 1']);
  });

  test('a vendor that cannot answer fails', async () => {
    server.answer((response) => sendJson(response, 503, errorBody('no', 'code')));
    await assert.rejects(scripted.run().answer);
    assert.deepEqual(await counted(), ['failed 1']);
  });
});
