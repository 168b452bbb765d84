import assert from 'node:assert/strict';
import { test } from 'node:test';
import { held, streamed, streamedText } from '../../support/chat-requests.ts';
import { eventually } from '../../support/eventually.ts';
import { freePort } from '../../support/free-port.ts';
import { TestGateway } from '../../support/gateway.ts';
import { MetricsPage } from '../../support/metrics-page.ts';
import { sendJson, startFixtureVendor } from '../../vendors/contracts/fixture-vendor.ts';
import { errorBody } from '../../vendors/recorded/recorded-openai.ts';

test("the time to a vendor's first frame has no wait for its capacity in it, and no error of the gateway counts as a frame", async () => {
  const failing = await startFixtureVendor();
  failing.answer((response) => sendJson(response, 500, errorBody('no', null)));
  // At 97 a minute two calls may come at once, and the third one 600 ms later, which a worker waits.
  const gateway = await TestGateway.start({
    workers: 0,
    configuration: {
      vendors: {
        // biome-ignore lint/suspicious/noTemplateCurlyInString: the configuration's own notation.
        paced: { base_url: '${SANDBOX_BASE_URL}', rpm: 100 },
        failing: { base_url: failing.baseUrl, api_key: 'a-key' },
      },
      models: {
        paced: { capability: 'chat', routes: [{ vendor: 'paced', model: 'sandbox-chat' }] },
        failing: { capability: 'chat', routes: [{ vendor: 'failing', model: 'm' }] },
      },
      routing: { attempts: 1 },
    },
  });
  try {
    const port = await freePort();
    await gateway.startWorker({ WORKER_PORT: String(port) });
    const read = () => MetricsPage.read(`http://127.0.0.1:${port}`);
    const client = gateway.client();
    await assert.rejects(client.chat.completions.create(held('hi', { model: 'failing' })));
    await eventually(async () => assert.equal((await read()).sum('sluice_jobs_total'), 1));
    assert.equal((await read()).sum('sluice_frames_total'), 0);
    for (let count = 0; count < 3; count++) {
      await streamedText(await client.chat.completions.create(streamed('Reply with exactly: hi', { model: 'paced' })));
    }
    await eventually(async () => assert.equal((await read()).sum('sluice_jobs_total'), 4));
    const page = await read();
    assert.ok(page.sum('sluice_vendor_pacing_total', 'outcome="soon"') > 0, 'no call waited for capacity');
    assert.equal(page.sum('sluice_vendor_first_frame_seconds_count', 'vendor="paced"'), 3);
    const seconds = page.sum('sluice_vendor_first_frame_seconds_sum', 'vendor="paced"');
    assert.ok(seconds < 0.5, `${seconds} s`);
  } finally {
    await gateway.stop();
    await failing.close();
  }
});
