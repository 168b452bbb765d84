import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { TestGateway } from '../../support/gateway.ts';
import { type FixtureVendor, sendJson, startFixtureVendor } from '../../vendors/contracts/fixture-vendor.ts';

const png = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1');
const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex');

describe('large images in base64', () => {
  let gateway: TestGateway;
  let vendor: FixtureVendor;
  before(async () => {
    vendor = await startFixtureVendor();
    // Less than eight answers take: some wait until others are stored.
    const settings = { OPENAI_API_KEY: 'sk-inside', OPENAI_BASE_URL: vendor.baseUrl, SLUICE_BODIES_MIB: '8' };
    gateway = await TestGateway.start({ settings });
  });
  after(async () => {
    await gateway?.stop();
    await vendor?.close();
  });

  it('POST /v1/images/generations returns each byte of images of kilobytes to megabytes, many at a time, to whom asked for them', async () => {
    const sent = new Map<string, string[]>();
    vendor.answer((response, { body }) => {
      const { prompt } = JSON.parse(body) as { prompt: string };
      const sizes = [60_000, 400_000, 3_000_000].slice(0, 1 + (sent.size % 3));
      const data = sizes.map((size) => ({
        b64_json: Buffer.concat([png, randomBytes(size + sent.size)]).toString('base64'),
      }));
      sent.set(
        prompt,
        data.map(({ b64_json: base64 }) => hashOf(base64)),
      );
      sendJson(response, 200, JSON.stringify({ created: 1, data }));
    });
    for (let round = 0; round < 3; round++) {
      const prompts = Array.from({ length: 8 }, (_, index) => `image ${round} ${index}`);
      const answers = prompts.map(async (prompt) => {
        const body = JSON.stringify({ model: 'gpt-image-2', prompt });
        const response = await gateway.fetch('/v1/images/generations', { method: 'POST', body });
        assert.equal(response.status, 200);
        const { data } = (await response.json()) as { data: { b64_json: string }[] };
        assert.deepEqual(
          data.map(({ b64_json: base64 }) => hashOf(base64)),
          sent.get(prompt),
        );
      });
      await Promise.all(answers);
    }
  });
});
