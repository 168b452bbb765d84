import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { held, streamed } from '../../support/chat-requests.ts';
import { eventually } from '../../support/eventually.ts';
import { TestGateway } from '../../support/gateway.ts';
import { attributeOf, OtlpReceiver, type ReceivedSpan } from '../../support/otlp-receiver.ts';

const path = '/v1/chat/completions';
const secret = 'prompt-that-no-trace-may-hold';
const traceId = '0af7651916cd43dd8448eb211c80319c';
const callersSpan = 'b7ad6b7169203331';
const caller = { traceparent: `00-${traceId}-${callersSpan}-01`, tracestate: 'vendor=opaque,other=1' };

const chunk = (content: string, finish: string | null = null): string =>
  `data: ${JSON.stringify({
    ...{ id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'm' },
    choices: [{ index: 0, delta: { content }, finish_reason: finish }],
  })}\n\n`;

/** A vendor whose first call fails, and whose streams wait in the middle. */
class StubbornVendor {
  readonly calls: IncomingHttpHeaders[] = [];
  readonly server: Server;
  #release: () => void = () => undefined;
  #released: Promise<void>;

  constructor() {
    this.#released = new Promise((resolve) => {
      this.#release = resolve;
    });
    this.server = createServer(async (request, response) => {
      this.calls.push(request.headers);
      await once(request.resume(), 'end');
      if (this.calls.length === 1) {
        response.writeHead(503, { 'content-type': 'application/json' });
        response.end('{"error":{"message":"overloaded"}}');
        return;
      }
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(chunk('One '));
      await this.#released;
      response.end(`${chunk('two', 'stop')}data: [DONE]\n\n`);
    });
  }

  release(): void {
    this.#release();
  }
}

/** Reads a stream up to the id of its first event, and leaves. */
async function readOneEvent(answer: Response): Promise<string> {
  const reader = (answer.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  for (;;) {
    const { value, done } = await reader.read();
    assert.ok(!done, `the stream ended: ${text}`);
    text += value;
    const id = /^id: (\S+)$/m.exec(text)?.[1];
    if (id === undefined) continue;
    await reader.cancel();
    return id;
  }
}

describe('traces', () => {
  let collector: OtlpReceiver;
  let vendor: StubbornVendor;
  let gateway: TestGateway;
  before(async () => {
    collector = await OtlpReceiver.start();
    vendor = new StubbornVendor();
    await new Promise<void>((resolve) => vendor.server.listen(0, '127.0.0.1', resolve));
    const baseUrl = `http://127.0.0.1:${(vendor.server.address() as AddressInfo).port}/v1`;
    gateway = await TestGateway.start({
      settings: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_EXPORTER_OTLP_HEADERS: 'x-collector=a%20key' },
      configuration: { vendors: { mine: { like: 'openai', base_url: baseUrl, api_keys: ['a', 'b'], open: true } } },
    });
  });
  after(async () => {
    await gateway.stop();
    vendor.server.closeAllConnections();
    vendor.server.close();
    collector.close();
  });

  it('a retried, resumed stream is one trace, from its caller through api, queue and worker to its vendor', async () => {
    const headers = { ...caller, 'x-sluice-on-disconnect': 'continue' };
    const body = JSON.stringify(streamed(secret, { model: 'mine/m' }));
    const answer = await gateway.fetch(path, { method: 'POST', body, headers });
    const job = answer.headers.get('x-request-id');
    const lastEvent = await readOneEvent(answer);
    vendor.release();
    const resumed = await gateway.fetch(`/v1/jobs/${job}/events`, {
      headers: { ...caller, 'last-event-id': lastEvent },
    });
    assert.match(await resumed.text(), /two[\s\S]*\[DONE\]/);
    // The processes send what they have when they close.
    await Promise.all([...gateway.apis, ...gateway.workers].map((process) => process.stop()));
    const spans = collector.spans.filter((span) => span.traceId === traceId);
    assert.equal(collector.spans.length, spans.length, 'spans of other traces');
    assert.deepEqual(spans.map(({ role, name }) => `${role}: ${name}`).sort(), [
      ...['api: GET job.events', 'api: POST chat'],
      ...['worker: chat m', 'worker: chat m', 'worker: queue', 'worker: run chat'],
    ]);
    const named = (name: string): ReceivedSpan[] => spans.filter((span) => span.name === name);
    const [request, resume, queue, run] = ['POST chat', 'GET job.events', 'queue', 'run chat'].map(
      (name) => named(name)[0] as ReceivedSpan,
    );
    assert.ok(request && resume && queue && run);
    for (const span of [request, resume]) assert.equal(span.parentSpanId, callersSpan);
    for (const span of [queue, run]) assert.equal(span.parentSpanId, request.spanId);
    const calls = named('chat m').sort((one, other) => (one.startTimeUnixNano < other.startTimeUnixNano ? -1 : 1));
    for (const span of calls) assert.equal(span.parentSpanId, run.spanId);
    // The vendor was told the span of each call.
    assert.deepEqual(
      vendor.calls.map(({ traceparent, tracestate }) => [traceparent, tracestate]),
      calls.map(({ spanId }) => [`00-${traceId}-${spanId}-01`, caller.tracestate]),
    );
    assert.deepEqual(
      calls.map((span) => span.status?.code ?? 0),
      [2, 0],
    );
    assert.deepEqual(
      calls.map((span) => attributeOf(span, 'error.type')),
      ['service_unavailable', undefined],
    );
    assert.equal(attributeOf(calls[1] as ReceivedSpan, 'gen_ai.provider.name'), 'mine');
    assert.equal(`job_${attributeOf(run, 'sluice.job.id')}`, job);
    assert.match(attributeOf(run, 'sluice.worker.id') ?? '', /^worker-/);
    assert.deepEqual(
      run.events?.map(({ name }) => name),
      ['first token'],
    );
    assert.equal(attributeOf(request, 'gen_ai.request.model'), 'mine/m');
    for (const { startTimeUnixNano: from, endTimeUnixNano: to } of spans) assert.ok(BigInt(from) <= BigInt(to));
    assert.ok(!collector.text.includes(secret) && !collector.text.includes(gateway.apiKey));
    for (const { path: sent, headers: with_ } of collector.requests) {
      assert.deepEqual([sent, with_['x-collector']], ['/v1/traces', 'a key']);
    }
    assert.match(gateway.apis[0]?.output() ?? '', new RegExp(`"trace":"${traceId}"`));
  });
});

describe('spans of failures', () => {
  const json = (response: ServerResponse, status: number, body: object): void => {
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  };
  /** A vendor of any wire whose first answer is an overload, and whose others refuse the request. */
  const overloadedOnce = (): Server => {
    let calls = 0;
    return createServer(async (request, response) => {
      await once(request.resume(), 'end');
      json(response, calls++ === 0 ? 503 : 400, { error: { message: 'No.' } });
    });
  };

  it("a caller's mistake is no error of the api's span, a fault is, and a vendor goes by its name in the conventions", async () => {
    const collector = await OtlpReceiver.start();
    const vendor = overloadedOnce();
    await new Promise<void>((resolve) => vendor.listen(0, '127.0.0.1', resolve));
    const base_url = `http://127.0.0.1:${(vendor.address() as AddressInfo).port}/v1`;
    const gateway = await TestGateway.start({
      settings: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url },
      configuration: {
        vendors: { mine: { like: 'mistral', base_url, api_keys: ['a-key'], open: true } },
        routing: { attempts: 1 },
      },
    });
    try {
      const ask = async (more: object, headers: Record<string, string> = {}): Promise<number> => {
        const answer = await gateway.fetch(path, { method: 'POST', body: JSON.stringify(held('Hi', more)), headers });
        await answer.text();
        return answer.status;
      };
      const statuses = [
        await ask({ model: 'mine/m' }),
        await ask({ model: 'mine/m' }),
        await ask({ model: 'unknown' }),
        await ask({}, { authorization: 'Bearer sk-sluice-no-key-of-this-gateway' }),
      ];
      assert.deepEqual(statuses, [503, 400, 404, 401]);
      await Promise.all([...gateway.apis, ...gateway.workers].map((process) => process.stop()));
      const shown = (span: ReceivedSpan) => ({
        status: attributeOf(span, 'http.response.status_code'),
        code: span.status?.code ?? 0,
        type: attributeOf(span, 'error.type'),
        refusal: attributeOf(span, 'sluice.error.code'),
      });
      const requests = collector.spans.filter(({ name }) => name === 'POST chat').map(shown);
      const byStatus = (one: ReturnType<typeof shown>, other: ReturnType<typeof shown>) =>
        String(one.status) < String(other.status) ? -1 : 1;
      const mistake = { code: 0, type: undefined };
      assert.deepEqual(requests.sort(byStatus), [
        { ...mistake, status: '400', refusal: 'invalid_request_error' },
        { ...mistake, status: '401', refusal: 'invalid_api_key' },
        { ...mistake, status: '404', refusal: 'model_not_found' },
        { status: '503', code: 2, type: 'service_unavailable', refusal: 'service_unavailable' },
      ]);
      const calls = collector.spans.filter(({ name }) => name === 'chat m');
      // Of a client's spans, a refusal is an error.
      assert.deepEqual(
        calls.map(({ status }) => status?.code),
        [2, 2],
      );
      for (const call of calls) {
        const names = ['gen_ai.provider.name', 'sluice.vendor'].map((name) => attributeOf(call, name));
        assert.deepEqual(names, ['mistral_ai', 'mine']);
      }
    } finally {
      await gateway.stop();
      vendor.closeAllConnections();
      vendor.close();
      collector.close();
    }
  });
});

describe('traces that are off', () => {
  it('neither a flag of a caller nor a malformed traceparent makes a trace, and the collector’s absence fails no request', async () => {
    const collector = await OtlpReceiver.start();
    const dead = await OtlpReceiver.start();
    const deadUrl = dead.url;
    dead.close();
    const gateway = await TestGateway.start({
      settings: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_TRACES_SAMPLER_ARG: '0' },
    });
    try {
      const ask = async (url: string, headers: Record<string, string>): Promise<number> => {
        const answer = await gateway.fetch(path, { url, method: 'POST', body: JSON.stringify(held('Hi')), headers });
        await answer.text();
        return answer.status;
      };
      assert.equal(await ask(gateway.url, caller), 200);
      const untold = await gateway.startApi({ OTEL_TRACES_SAMPLER_ARG: '1' });
      for (const traceparent of [
        `00-${'0'.repeat(32)}-${callersSpan}-01`,
        `00-${traceId}-${'0'.repeat(16)}-01`,
        `ff-${traceId}-${callersSpan}-01`,
        `00-${traceId.toUpperCase()}-${callersSpan}-01`,
        `00-${traceId}-${callersSpan}-01-and-more`,
        'x'.repeat(4000),
      ]) {
        assert.equal(await ask(untold.url, { traceparent, tracestate: 'y'.repeat(2000) }), 200);
      }
      const alone = await gateway.startApi({ OTEL_TRACES_SAMPLER_ARG: '1', OTEL_EXPORTER_OTLP_ENDPOINT: deadUrl });
      assert.equal(await ask(alone.url, caller), 200);
      assert.equal(await alone.stop(), 0);
      await Promise.all([untold.stop(), gateway.apis[0]?.stop()]);
      await eventually(() => assert.ok(collector.spans.length > 0, 'no span has come'));
      // Those of the second api, in traces of their own.
      assert.ok(collector.spans.every((span) => span.traceId !== traceId || span.role === 'worker'));
      assert.ok(!collector.text.includes('yyyy'));
    } finally {
      await gateway.stop();
      collector.close();
    }
  });
});
