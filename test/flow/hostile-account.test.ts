import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { WebSocket } from 'ws';
import { held } from '../support/chat-requests.ts';
import { TestGateway } from '../support/gateway.ts';
import { makeLimitedAccount } from '../support/limited-account.ts';
import { makeApiKey } from '../support/make-api-key.ts';
import { RawRequest } from '../support/raw-request.ts';

const isSoak = Boolean(process.env.SLUICE_SOAK);
/** How long each phase lasts, and how many connections each attack has. */
const phaseMs = isSoak ? 20_000 : 1500;
const width = isSoak ? 40 : 6;
const path = '/v1/chat/completions';
const dollar = 1_000_000_000;
const timeout = isSoak ? 600_000 : 120_000;

/** What the victim was answered in one phase: times in ms, and how often each status. */
interface Phase {
  readonly times: number[];
  readonly statuses: Map<number, number>;
}

/** One attack: goes on until it is aborted. `key` is that of the hostile account. */
interface Attack {
  readonly name: string;
  /** Credit of the hostile account, in dollars. */
  readonly credit: 0 | 1;
  readonly settings?: Record<string, string>;
  /** @param index which of the attack's connections it is */
  readonly run: (key: string, signal: AbortSignal, index: number) => Promise<void>;
}

let gateway: TestGateway;
let victim: string;

before(async () => {
  // So few that the queue fills in the time of a phase; the tenth of it that stays free is more than the attack's connections.
  const few = { SLUICE_QUEUE_LIMIT: isSoak ? '500' : '100', WORKER_CONCURRENCY_CHAT: '8' };
  const settings = { ...few, SLUICE_BODIES_MIB: '64', TRUST_PROXY: '1' };
  gateway = await TestGateway.start({ settings });
  victim = await makeApiKey(gateway, { accountId: 'victim' });
});
after(() => gateway?.stop());

const post = (key: string, body: string, more: RequestInit = {}): Promise<Response> => {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...more.headers };
  return gateway.fetch(path, { ...more, method: 'POST', body, headers });
};

const small = JSON.stringify(held('Hi', { max_tokens: 5 }));
const large = JSON.stringify(held('x'.repeat(300_000), { max_tokens: 5 }));
/** Valid JSON of many values, which is long to parse and then refused. */
const values = `{"model":"sandbox-chat","messages":[${'{},'.repeat(600_000)}{}]}`;

/** Repeats until the signal; what a request comes to is the attacker's own business. */
async function repeat(signal: AbortSignal, once: () => Promise<unknown>): Promise<void> {
  while (!signal.aborted) {
    await once().catch(() => undefined);
    await delay(1);
  }
}

/** Keeps something open until the signal. */
async function keep(signal: AbortSignal, open: () => Promise<() => void>): Promise<void> {
  await repeat(signal, async () => {
    const close = await open();
    await delay(500, undefined, { signal }).catch(() => undefined);
    close();
  });
}

const unfinished = (head: Record<string, string>, bytes: number, start = ''): Attack['run'] => {
  return (key, signal) =>
    keep(signal, async () => {
      const { path: at = path, ...headers } = head;
      const request = await RawRequest.open(gateway.url, { key, path: at, headers });
      await request.send(start);
      void request.send(Buffer.alloc(bytes, 'x'));
      return () => request.socket.destroy();
    });
};

const json = { 'content-length': '19000000' };
const form = {
  path: '/v1/images/edits',
  'content-type': 'multipart/form-data; boundary=b',
  'content-length': '300000000',
};
const part = '--b\r\ncontent-disposition: form-data; name="image"; filename="a.png"\r\n\r\n';

const sockets: Attack['run'] = (key, signal) =>
  keep(signal, async () => {
    const url = `${gateway.url.replace(/^http/, 'ws')}/v1/responses`;
    const socket = new WebSocket(url, { headers: { authorization: `Bearer ${key}` } });
    socket.on('error', () => undefined);
    socket.once('open', () => socket.send(Buffer.alloc(16_000_000, 'x'), { fin: false, binary: false }));
    return () => socket.terminate();
  });

const watchers: Attack['run'] = async (key, signal) => {
  const made = await post(key, small, { headers: { prefer: 'respond-async' } });
  const { id } = (await made.json()) as { id?: string };
  await repeat(signal, async () => {
    const answer = await gateway.fetch(`/v1/jobs/${id}/events`, {
      headers: { authorization: `Bearer ${key}` },
      signal,
    });
    await answer.text();
  });
};

const attacks: Attack[] = [
  {
    name: 'large bodies of many values, without credit',
    credit: 0,
    run: (key, signal) => repeat(signal, () => post(key, values, { signal })),
  },
  {
    name: 'large bodies of many values',
    credit: 1,
    run: (key, signal) => repeat(signal, () => post(key, values, { signal })),
  },
  {
    name: 'a queue that is filled',
    credit: 1,
    run: (key, signal) => {
      const body = JSON.stringify(held('WORDS:20@100', { max_tokens: 30 }));
      return repeat(signal, () => post(key, body, { signal, headers: { prefer: 'respond-async' } }));
    },
  },
  { name: 'unfinished bodies, without credit', credit: 0, run: unfinished(json, 18_000_000, '{') },
  { name: 'unfinished bodies', credit: 1, run: unfinished(json, 18_000_000, '{') },
  { name: 'unfinished forms', credit: 1, run: unfinished(form, 20_000_000, part) },
  { name: 'response sockets with unfinished messages', credit: 0, run: sockets },
  { name: 'watchers of one job', credit: 1, run: watchers },
  {
    name: 'scrapes of metrics from elsewhere',
    credit: 0,
    run: (_key, signal) =>
      repeat(signal, () => gateway.fetch('/metrics', { signal, headers: { 'x-forwarded-for': '203.0.113.7' } })),
  },
  {
    name: 'wrong API keys',
    credit: 0,
    run: (_key, signal, index) => {
      let made = 0;
      return repeat(signal, () =>
        post(`sk-sluice-wrong-${index}-${++made}`, small, { signal, headers: { 'x-forwarded-for': '203.0.113.7' } }),
      );
    },
  },
];

/** The victim's steady load: small requests, and a large one among them. */
async function load(ms: number): Promise<Phase> {
  const phase: Phase = { times: [], statuses: new Map() };
  const until = Date.now() + ms;
  const one = async (body: string, restMs: number): Promise<void> => {
    do {
      const started = performance.now();
      const answer = await post(victim, body);
      await answer.text();
      phase.times.push(performance.now() - started);
      phase.statuses.set(answer.status, (phase.statuses.get(answer.status) ?? 0) + 1);
      await delay(restMs);
    } while (Date.now() < until);
  };
  await Promise.all([one(small, 20), one(small, 20), one(large, 200)]);
  return phase;
}

function p95({ times }: Phase): number {
  const sorted = [...times].sort((one, other) => one - other);
  return sorted[Math.floor(sorted.length * 0.95)] ?? 0;
}

describe('one hostile account', () => {
  for (const { name, credit, run } of attacks) {
    test(`does not keep another from its answers: ${name}`, { timeout }, async () => {
      const calm = await load(phaseMs);
      const { key } = await makeLimitedAccount(gateway, { credit: credit * dollar });
      const stop = new AbortController();
      const attackers = Array.from({ length: width }, (_, index) => run(key, stop.signal, index));
      try {
        const hurt = await load(phaseMs);
        if (isSoak) {
          const ratio = (p95(hurt) / p95(calm)).toFixed(2);
          console.log(
            `${name}: p95 ${p95(calm).toFixed(0)} -> ${p95(hurt).toFixed(0)} ms (${ratio} times), ${hurt.times.length} answers`,
          );
        }
        assert.deepEqual([...hurt.statuses.keys()], [200]);
        assert.ok(hurt.times.length >= 3, 'the victim was served');
      } finally {
        stop.abort();
        await Promise.all(attackers);
      }
    });
  }
});
