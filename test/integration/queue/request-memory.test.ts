import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { eventually } from '../../support/eventually.ts';
import { GatedVendor } from '../../support/gated-vendor.ts';
import { TestGateway } from '../../support/gateway.ts';
import { makeLimitedAccount } from '../../support/limited-account.ts';
import { type FixtureVendor, sendJson, startFixtureVendor } from '../../vendors/contracts/fixture-vendor.ts';

/** A worker's room for requests, of which an account may use half; and one that waits for none when it is stopped. */
const settings = { SLUICE_BODIES_MIB: '4', SLUICE_SHUTDOWN_SECONDS: '1' };
const large = 'x'.repeat(1_300_000);
const dollar = 1_000_000_000;

describe('large requests in the memory of a worker', () => {
  let gate: GatedVendor;
  let studio: FixtureVendor;
  let gateway: TestGateway;
  let otherKey: string;
  before(async () => {
    gate = await GatedVendor.start();
    studio = await startFixtureVendor();
    const image = { capability: 'image' as const, image: { tasks: ['edit' as const], most: 1, partial: false } };
    const { vendors, models, routing } = gate.configuration;
    gateway = await TestGateway.start({
      configuration: {
        routing,
        vendors: {
          ...vendors,
          embedding: { like: 'fal', base_url: studio.baseUrl, api_keys: ['any'] },
          streaming: { like: 'openai', base_url: studio.baseUrl, api_keys: ['any'] },
        },
        models: {
          ...models,
          'embedded-image': { ...image, routes: [{ vendor: 'embedding', model: 'fal-ai/flux' }] },
          'streamed-image': { ...image, routes: [{ vendor: 'streaming', model: 'flux' }] },
        },
      },
      workers: 0,
    });
    await gateway.startWorker(settings);
    otherKey = (await makeLimitedAccount(gateway, { credit: 100 * dollar })).key;
  });
  after(async () => {
    await gateway.stop();
    await gate.close();
    await studio.close();
  });

  const authorized = (key: string): Record<string, string> => ({ authorization: `Bearer ${key}` });

  async function chat(user: string, content: string, key = gateway.apiKey): Promise<string> {
    const body = JSON.stringify({ model: 'gated', user, max_tokens: 10, messages: [{ role: 'user', content }] });
    const headers = { prefer: 'respond-async', ...authorized(key) };
    const response = await gateway.fetch('/v1/chat/completions', { method: 'POST', headers, body });
    assert.equal(response.status, 202);
    return ((await response.json()) as { id: string }).id;
  }

  const called = (user: string, at = 0) =>
    eventually(() => gate.callsOf(user)[at] ?? assert.fail(`no such call of ${user}`));

  async function statusOf(id: string): Promise<string> {
    return ((await (await gateway.fetch(`/v1/jobs/${id}`)).json()) as { status: string }).status;
  }

  it('large requests of an account wait until it has room; small ones, and large ones of another account, do not', async () => {
    await chat('first', large);
    const first = await called('first');
    const second = await chat('second', large);
    await eventually(async () => assert.equal(await statusOf(second), 'in_progress'));
    await chat('small', 'Hello!');
    await chat('other', large, otherKey);
    for (const user of ['small', 'other']) (await called(user)).release();
    assert.deepEqual(gate.callsOf('second'), []);
    first.release();
    (await called('second')).release();
    await eventually(async () => assert.equal(await statusOf(second), 'completed'));
  });

  it('a request that waits for room is cancelled at once, and another worker takes it over when its own is stopped', async () => {
    await chat('holding', large);
    await called('holding');
    const [cancelled, moved] = [await chat('cancelled', large), await chat('moved', large)];
    for (const id of [cancelled, moved]) await eventually(async () => assert.equal(await statusOf(id), 'in_progress'));
    assert.equal((await gateway.fetch(`/v1/jobs/${cancelled}`, { method: 'DELETE' })).status, 200);
    await eventually(async () => assert.equal(await statusOf(cancelled), 'cancelled'));
    const [stopping] = gateway.workers;
    await gateway.startWorker(settings);
    await stopping?.stop();
    // The chat that had room has no output either, and begins anew.
    (await called('holding', 1)).release();
    (await called('moved')).release();
    await eventually(async () => assert.equal(await statusOf(moved), 'completed'));
    assert.deepEqual([gate.callsOf('cancelled').length, gate.callsOf('moved').length], [0, 1]);
  });

  it('files that become a part of the request wait for room as well, and files that are sent as they are read do not', async () => {
    const refusals: (() => void)[] = [];
    studio.answer((response) => refusals.push(() => sendJson(response, 400, '{"detail":"refused"}')));
    const edit = async (model: string): Promise<Response> => {
      const form = new FormData();
      form.append('model', model);
      form.append('prompt', 'At night');
      form.append('image', new Blob([large], { type: 'image/png' }), 'harbour.png');
      const init = { method: 'POST', body: form, headers: authorized(gateway.apiKey) };
      return await fetch(`${gateway.url}/v1/images/edits`, init);
    };
    const embedded = [edit('embedded-image'), edit('embedded-image')];
    await eventually(() => assert.equal(refusals.length, 1));
    const streamed = [edit('streamed-image'), edit('streamed-image'), edit('streamed-image')];
    await eventually(() => assert.equal(refusals.length, 4));
    for (const refuse of refusals.splice(0)) refuse();
    await eventually(() => assert.equal(refusals.length, 1));
    for (const refuse of refusals) refuse();
    for (const response of await Promise.all([...embedded, ...streamed])) assert.equal(response.status, 400);
  });
});
