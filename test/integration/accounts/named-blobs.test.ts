import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import fc from 'fast-check';
import { endpoints } from '../../../api/endpoints/endpoints.ts';
import { defaultAccountId } from '../../../shared/accounts/api-keys.ts';
import { Blobs } from '../../../shared/blobs/blobs.ts';
import { eventually } from '../../support/eventually.ts';
import { TestGateway } from '../../support/gateway.ts';
import { makeApiKey } from '../../support/make-api-key.ts';
import { goodBodies, namingBlob } from '../../support/named-blobs.ts';
import { storedBlobs } from '../../support/stored-blobs.ts';
import { type FixtureVendor, sendJson, startFixtureVendor } from '../../vendors/contracts/fixture-vendor.ts';

/** What only the owner may ever see. */
const secret = 'the-owners-own-bytes';
/** A request that is tried takes milliseconds; the whole table of them, minutes. */
const runs = process.env.SLUICE_SOAK ? 10_000 : 60;

/** How a path is asked: with a path parameter that leads nowhere, for that is looked for after the body is read. */
const urlOf = (path: string): string => path.replace(/:\w+/, `video_${'0'.repeat(32)}`);

describe('blobs of another account', () => {
  let gateway: TestGateway;
  let vendor: FixtureVendor;
  /** A key of another account than the blobs'. */
  let apiKey: string;
  /** Ids of a result, of a prompt, and of an upload that the release before has stored. */
  let ids: string[];
  const old = '2026112213/5aa167e1-6f2c-4d8e-9b0a-0123456789ab.png';

  before(async () => {
    vendor = await startFixtureVendor();
    vendor.answer((response) => sendJson(response, 400, '{"error":{"message":"no","type":"invalid_request_error"}}'));
    const settings = { OPENAI_API_KEY: 'sk-test-0123456789abcdef', OPENAI_BASE_URL: vendor.baseUrl };
    gateway = await TestGateway.start({ settings });
    apiKey = await makeApiKey(gateway, { accountId: 'another' });
    const own = (await Blobs.open(gateway.dataDir)).of(defaultAccountId);
    const result = await own.putStream(
      (async function* () {
        yield Buffer.from(secret);
      })(),
      { extension: 'png' },
    );
    ids = [result.id, await own.put(`{"prompt":"${secret}"}`), old];
    const path = join(gateway.dataDir, 'blobs', old);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, secret);
  });
  after(async () => {
    await gateway?.stop();
    await vendor?.close();
  });

  /** Sends a body, and sees that nothing of the blobs comes back or goes to the vendor. */
  async function send(path: string, body: unknown): Promise<Response> {
    const seen = vendor.requests.length;
    const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' };
    const answer = await fetch(`${gateway.url}${urlOf(path)}`, { method: 'POST', headers, body: JSON.stringify(body) });
    assert.doesNotMatch(await answer.clone().text(), new RegExp(secret));
    for (const { bytes } of vendor.requests.slice(seen))
      assert.equal(bytes.includes(secret), false, 'the vendor got it');
    return answer;
  }

  /** Nothing is left but the blobs of the owner, and these are all there. */
  async function assertUntouched(): Promise<void> {
    const names = ids.map((id) => id.slice(id.indexOf('/') + 1)).sort();
    await eventually(async () => assert.deepEqual((await storedBlobs(gateway.dataDir)).sort(), names));
  }

  it('a JSON body that names a blob in the position of an upload neither sends it to a vendor nor deletes it', async () => {
    for (const file of ids) {
      const upload = { file, name: 'a.png', type: 'image/png', bytes: 1 };
      const named = { image_url: 'https://example.com/x.png', ...upload };
      const edit = { model: 'gpt-image-2', prompt: 'leave it as it is' };
      for (const more of [
        { images: [named] },
        { images: [upload] },
        { images: [named], size: 'nonsense' },
        { images: [{ image_url: named.image_url }], mask: named },
      ]) {
        const answer = await send('/v1/images/edits', { ...edit, ...more });
        assert.equal(answer.status, 400);
        const { error } = (await answer.json()) as { error: { param: string } };
        assert.match(error.param, /^(images\[0\]|mask)/);
      }
      await send('/v1/videos', { model: 'sora-2', prompt: 'x', input_reference: named });
    }
    await assertUntouched();
  });

  it('no JSON body of any endpoint reads or deletes a blob of another account', async () => {
    const cases = endpoints.flatMap(({ name, path, parse }) => {
      if (parse === undefined) return [];
      const bodies = goodBodies[name] ?? assert.fail(`${name} has no body in test/support/named-blobs.ts`);
      return bodies.flatMap((good) =>
        ids.flatMap((id) => namingBlob(good, id).map(({ how, body }) => ({ name, path, how, body }))),
      );
    });
    assert.ok(cases.length > 2000, `${cases.length} cases`);
    const begun = vendor.requests.length;
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...cases), async ({ path, body }) => {
        const { status } = await send(path, body);
        assert.ok(status < 500, `answered ${status}`);
      }),
      { numRuns: runs },
    );
    assert.ok(vendor.requests.length > begun, 'no request came to the vendor');
    await assertUntouched();
  });

  it('the logs contain no blob id or signature, however the path of the request is written', async () => {
    const [id = ''] = ids;
    const paths = [
      `/results/${id}`,
      `/Results/${id}`,
      `//results/${id}`,
      `/results/${encodeURIComponent(id)}`,
      `/x/${id}`,
    ];
    for (const path of [...paths, `/${encodeURIComponent(id)}`]) {
      const answer = await fetch(`${gateway.url}${path}?expires=1&signature=0123456789`);
      assert.ok(answer.status < 500, path);
    }
    const written = (): string => [...gateway.apis, ...gateway.workers].map((one) => one.output()).join('');
    await eventually(() => assert.match(written(), /"path":"\/x\/\[blob\]"/));
    for (const named of [...ids, 'signature=']) {
      assert.equal(written().includes(named.slice(named.indexOf('/') + 1)), false, named);
    }
  });
});
