import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import type OpenAI from 'openai';
import { percentile } from '../../support/faults/chat-times.ts';
import { isSoak } from '../../support/faults/load.ts';
import { freePort } from '../../support/free-port.ts';
import { TestGateway } from '../../support/gateway.ts';
import {
  beginStream,
  type FixtureVendor,
  sendJson,
  sendStream,
  startFixtureVendor,
} from '../../vendors/contracts/fixture-vendor.ts';
import { completion, errorBody, events, usage } from '../../vendors/recorded/recorded-openai.ts';

/** How long the trouble lasts, and the requests that go well before it: a gateway that has just begun has no budget yet. */
const troubleMs = isSoak ? 300_000 : 15_000;
const warmUpRequests = 600;
const clients = 16;
const thinkMs = 20;
/** What the slow route takes, and what it is allowed. */
const slowMs = 6000;
const firstByteMs = 1000;
const idleMs = 1500;
/** How much longer than in good times a request may take at p99, at most: what a slow route is allowed, and a pause. */
const maxAddedMs = idleMs + 1000;

const body = JSON.stringify({
  ...completion,
  choices: [{ index: 0, message: { role: 'assistant', content: 'fine' }, logprobs: null, finish_reason: 'stop' }],
  usage,
});
const chunks = events([
  { choices: [{ index: 0, delta: { role: 'assistant', content: 'fine' }, finish_reason: null }] },
  { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
]);

let vendors: { good: FixtureVendor; flaky: FixtureVendor; slow: FixtureVendor };
let gateway: TestGateway;
let workerPort: number;

const answerWell = (vendor: FixtureVendor, waitMs: number): void =>
  vendor.answer((response, request) => {
    const { stream } = JSON.parse(request.body) as { stream?: boolean };
    setTimeout(() => {
      if (stream) sendStream(response, [chunks]);
      else sendJson(response, 200, body);
    }, waitMs);
  });

/** Every second call fails: with a status, a connection that breaks, or a stream that breaks before its first token. */
function fail(vendor: FixtureVendor): void {
  let turn = 0;
  vendor.answer((response, request) => {
    const { stream } = JSON.parse(request.body) as { stream?: boolean };
    turn += 1;
    if (turn % 2 === 0) {
      if (stream) sendStream(response, [chunks]);
      else sendJson(response, 200, body);
    } else if (turn % 3 === 0) {
      response.socket?.resetAndDestroy();
    } else if (turn % 5 === 0 && stream) {
      beginStream(response);
      response.socket?.destroy();
    } else {
      sendJson(response, turn % 4 === 1 ? 500 : 503, errorBody('in trouble', 'overloaded'));
    }
  });
}

before(async () => {
  const [good, flaky, slow] = await Promise.all([startFixtureVendor(), startFixtureVendor(), startFixtureVendor()]);
  vendors = { good, flaky, slow };
  for (const vendor of Object.values(vendors)) answerWell(vendor, 5);
  workerPort = await freePort();
  const routes = Object.keys(vendors).map((vendor) => ({
    ...{ vendor, model: 'm', first_byte_seconds: firstByteMs / 1000, idle_seconds: idleMs / 1000 },
  }));
  gateway = await TestGateway.start({
    settings: { WORKER_PORT: String(workerPort) },
    configuration: {
      vendors: Object.fromEntries(
        Object.entries(vendors).map(([name, { baseUrl }]) => [
          name,
          { like: 'openai', base_url: baseUrl, api_key: 'k' },
        ]),
      ),
      models: { routed: { capability: 'chat', routes } },
    },
  });
});

after(async () => {
  await gateway?.stop();
  await Promise.all(Object.values(vendors ?? {}).map((vendor) => vendor.close()));
});

interface Load {
  readonly times: number[];
  readonly failures: string[];
  readonly requests: number;
}

/** Sends chats, every second one a stream, from so many clients at a time, as long as `goesOn` says so. */
async function load(goesOn: (requests: number) => boolean): Promise<Load> {
  const times: number[] = [];
  const failures: string[] = [];
  let requests = 0;
  const client = gateway.client();
  const one = async (): Promise<void> => {
    while (goesOn(requests)) {
      const isStream = requests++ % 2 === 0;
      const startedAt = performance.now();
      try {
        assert.equal(await ask(client, isStream), 'fine');
        times.push(performance.now() - startedAt);
      } catch (error) {
        failures.push(error instanceof Error ? error.message : String(error));
      }
      await delay(thinkMs);
    }
  };
  await Promise.all(Array.from({ length: clients }, one));
  return { times, failures, requests };
}

async function ask(client: OpenAI, isStream: boolean): Promise<string> {
  const request = { model: 'routed', messages: [{ role: 'user' as const, content: 'hi' }] };
  if (!isStream) return (await client.chat.completions.create(request)).choices[0]?.message.content ?? '';
  let said = '';
  for await (const chunk of await client.chat.completions.create({ ...request, stream: true })) {
    said += chunk.choices[0]?.delta.content ?? '';
  }
  return said;
}

test('a model with a flaky and a slow route answers over 99.9 % of its requests, in bounded time', async () => {
  const calm = await load((requests) => requests < warmUpRequests);
  fail(vendors.flaky);
  answerWell(vendors.slow, slowMs);
  const calls = () => Object.values(vendors).map(({ requests }) => requests.length);
  const before = calls();
  const endsAt = Date.now() + troubleMs;
  const { times, failures, requests } = await load(() => Date.now() < endsAt);
  const share = 1 - failures.length / requests;
  const [calmP99, p99] = [percentile(calm.times, 0.99), percentile(times, 0.99)];
  const [good, flaky, slow] = calls().map((count, index) => count - (before[index] as number));
  console.log(
    `${requests} requests, ${failures.length} failed (${(share * 100).toFixed(3)} % answered); ` +
      `p99 ${calmP99.toFixed(0)} ms in good times, ${p99.toFixed(0)} ms; calls: ${good} good, ${flaky} flaky, ${slow} slow`,
  );
  assert.ok(share > 0.999, `${share}: ${[...new Set(failures)].join('; ')}`);
  // Not a timing of ours: it is what the settings bound.
  assert.ok(p99 < calmP99 + maxAddedMs, `p99 ${p99} ms`);
  assert.ok((slow as number) < requests / 20, 'the slow route is left alone');
  const metrics = await (await fetch(`http://127.0.0.1:${workerPort}/metrics`)).text();
  for (const vendor of ['flaky', 'slow']) {
    assert.match(metrics, new RegExp(`sluice_route_breaker_open\\{[^}]*route="${vendor}/m"[^}]*\\} [01]`));
    assert.match(metrics, new RegExp(`sluice_vendor_retries_total\\{[^}]*vendor="${vendor}"[^}]*\\} [1-9]`));
  }
  assert.match(metrics, /sluice_retry_budget(\{[^}]*\})? \d/);
});
