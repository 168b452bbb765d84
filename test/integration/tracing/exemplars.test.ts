import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { held, streamed } from '../../support/chat-requests.ts';
import { eventually } from '../../support/eventually.ts';
import { freePort } from '../../support/free-port.ts';
import { TestGateway } from '../../support/gateway.ts';
import { OtlpReceiver } from '../../support/otlp-receiver.ts';
import { Prometheus } from '../../support/prometheus.ts';

const path = '/v1/chat/completions';
const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
const traceId = traceparent.slice(3, 35);
const openMetrics = { accept: 'application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5' };
const histograms = [
  ...['sluice_request_duration_seconds', 'sluice_time_to_first_frame_seconds'],
  ...['sluice_queue_wait_seconds', 'sluice_vendor_first_frame_seconds'],
];

describe('exemplars of latency', () => {
  let collector: OtlpReceiver;
  let gateway: TestGateway;
  let workerUrl: string;
  before(async () => {
    collector = await OtlpReceiver.start();
    gateway = await TestGateway.start({ workers: 0, settings: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url } });
    const port = await freePort();
    workerUrl = `http://127.0.0.1:${port}`;
    await gateway.startWorker({ WORKER_PORT: String(port) });
  });
  after(async () => {
    await gateway?.stop();
    collector?.close();
  });

  it('a Prometheus finds the trace of a request from each latency histogram that observed it', async () => {
    const body = JSON.stringify(streamed('Hi'));
    const answer = await gateway.fetch(path, { method: 'POST', body, headers: { traceparent } });
    assert.match(await answer.text(), /\[DONE\]/);
    const jobs = [gateway.url, workerUrl].map((url) => ({
      ...{ job_name: url, scrape_interval: '1s', static_configs: [{ targets: [url.slice('http://'.length)] }] },
    }));
    const prometheus = await Prometheus.start(jobs, { features: ['exemplar-storage'] });
    try {
      for (const name of histograms) {
        await eventually(async () => {
          const found = await prometheus.exemplars(`${name}_bucket`);
          assert.deepEqual(
            found.map(({ labels }) => labels),
            [{ trace_id: traceId }],
            name,
          );
        }, 30_000);
      }
      // All that the page has besides is read as before.
      const [version] = await prometheus.query('sum(sluice_requests_total{endpoint="chat",status="200"})');
      assert.equal(version?.value, 1);
    } finally {
      await prometheus.stop();
    }
  });

  it('without that media type the page is the text format, as it is without traces whatever is asked for', async () => {
    const asked = await fetch(`${gateway.url}/metrics`, { headers: openMetrics });
    assert.match(asked.headers.get('content-type') ?? '', /^application\/openmetrics-text; ?version=1\.0\.0/);
    assert.match(await asked.text(), /# EOF\n$/);
    const plain = await fetch(`${gateway.url}/metrics`);
    assert.match(plain.headers.get('content-type') ?? '', /^text\/plain/);
    assert.doesNotMatch(await plain.text(), /trace_id|# EOF/);
    const untraced = await TestGateway.start({ workers: 0 });
    try {
      assert.equal(
        (await untraced.fetch(path, { method: 'POST', body: JSON.stringify(held('', { model: 'no' })) })).status,
        404,
      );
      const page = await fetch(`${untraced.url}/metrics`, { headers: openMetrics });
      assert.match(page.headers.get('content-type') ?? '', /^text\/plain/);
      assert.doesNotMatch(await page.text(), /trace_id|# EOF/);
    } finally {
      await untraced.stop();
    }
  });
});
