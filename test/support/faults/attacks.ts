import { setTimeout as delay } from 'node:timers/promises';
import { WebSocket } from 'ws';
import { held } from '../chat-requests.ts';
import { RawRequest } from '../raw-request.ts';
import { endlessModel } from './endless-vendor.ts';

const path = '/v1/chat/completions';
/** Of 40 connections with 1.8 MB a request, or 18 MB in 5 s, the attacker's network has 1 Gbit/s; of small ones some 1,500 come a second. Five a second of each fill a queue. */
const [largeRestMs, smallRestMs, fillingRestMs] = [500, 25, 200];

/** Whom an attack is made on, and by whom. */
interface Target {
  /** Of the api. */
  readonly url: string;
  /** That of the hostile account. */
  readonly key: string;
}

/** One attack, of many connections: goes on until it is aborted. */
export interface Attack {
  readonly name: string;
  /** Credit of the hostile account, in dollars. */
  readonly credit: 0 | 1;
  /** @param index which of the attack's connections it is */
  readonly run: (target: Target, signal: AbortSignal, index: number) => Promise<void>;
}

const post = ({ url, key }: Target, body: string, more: RequestInit = {}): Promise<Response> => {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...more.headers };
  return fetch(`${url}${path}`, { ...more, method: 'POST', body, headers });
};

/** An address that is neither the victim's nor the host's own; the api trusts the header. */
const elsewhere = { 'x-forwarded-for': '203.0.113.7' };
const small = JSON.stringify(held('Hi', { max_tokens: 5 }));
const endless = JSON.stringify({ ...held('Hi', { max_tokens: 10 }), model: endlessModel, stream: true });
/** Valid JSON of many values, which is long to parse and then refused. */
const values = `{"model":"sandbox-chat","messages":[${'{},'.repeat(600_000)}{}]}`;

/**
 * Repeats until the signal, with a rest (ms, in the mean) in between; what a request comes to is the attacker's own business. The
 * connections do not keep step, as those of no client do.
 */
async function repeat(signal: AbortSignal, restMs: number, once: () => Promise<unknown>): Promise<void> {
  while (!signal.aborted) {
    await delay(2 * restMs * Math.random());
    await once().catch(() => undefined);
  }
}

/** Keeps something open until the signal, and opens it anew now and then. */
async function keep(signal: AbortSignal, open: () => Promise<() => void>): Promise<void> {
  await repeat(signal, 1, async () => {
    const close = await open();
    await delay(5000, undefined, { signal }).catch(() => undefined);
    close();
  });
}

const unfinished = (head: Record<string, string>, bytes: number, start = ''): Attack['run'] => {
  return ({ url, key }, signal) =>
    keep(signal, async () => {
      const { path: at = path, ...headers } = head;
      const request = await RawRequest.open(url, { key, path: at, headers });
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

const sockets: Attack['run'] = ({ url, key }, signal) =>
  keep(signal, async () => {
    const socket = new WebSocket(`${url.replace(/^http/, 'ws')}/v1/responses`, {
      headers: { authorization: `Bearer ${key}` },
    });
    socket.on('error', () => undefined);
    socket.once('open', () => socket.send(Buffer.alloc(16_000_000, 'x'), { fin: false, binary: false }));
    return () => socket.terminate();
  });

const watchers: Attack['run'] = async (target, signal) => {
  const made = await post(target, small, { headers: { prefer: 'respond-async' } });
  const { id } = (await made.json()) as { id?: string };
  await repeat(signal, smallRestMs, async () => {
    const answer = await fetch(`${target.url}/v1/jobs/${id}/events`, {
      headers: { authorization: `Bearer ${target.key}` },
      signal,
    });
    await answer.text();
  });
};

/** The job whose answer is read again and again: as long as answers may be. */
let longJob: Promise<string> | undefined;

async function makeLongJob(target: Target): Promise<string> {
  const made = await post(target, endless, { headers: { prefer: 'respond-async' } });
  return ((await made.json()) as { id: string }).id;
}

const replays: Attack['run'] = async (target, signal) => {
  longJob ??= makeLongJob(target);
  const url = `${target.url}/v1/jobs/${await longJob}/events`;
  await repeat(signal, largeRestMs, async () => {
    const answer = await fetch(url, { headers: { authorization: `Bearer ${target.key}` }, signal });
    for await (const _ of answer.body ?? []);
  });
};

/** Requests whose answers are for later. */
const later = (text: string, restMs: number): Attack['run'] => {
  const body = JSON.stringify(held(text, { max_tokens: 30 }));
  const headers = { prefer: 'respond-async' };
  return (target, signal) => repeat(signal, restMs, () => post(target, body, { signal, headers }));
};

/** Each is a test of its own. */
export const attacks: readonly Attack[] = [
  {
    name: 'large bodies of many values, without credit',
    credit: 0,
    run: (target, signal) => repeat(signal, largeRestMs, () => post(target, values, { signal })),
  },
  {
    name: 'large bodies of many values',
    credit: 1,
    run: (target, signal) => repeat(signal, largeRestMs, () => post(target, values, { signal })),
  },
  { name: 'many small requests', credit: 1, run: later('WORDS:2@1000', smallRestMs) },
  // A second each: they take all slots of the worker, and some more come than it ends.
  { name: 'a queue that is filled', credit: 1, run: later('WORDS:2@2', fillingRestMs) },
  {
    name: 'streams whose frames fill the disk',
    credit: 1,
    run: (target, signal) =>
      repeat(signal, largeRestMs, async () => {
        const answer = await post(target, endless, { signal });
        for await (const _ of answer.body ?? []);
      }),
  },
  { name: 'replays of a long answer', credit: 1, run: replays },
  { name: 'unfinished bodies, without credit', credit: 0, run: unfinished(json, 18_000_000, '{') },
  { name: 'unfinished bodies', credit: 1, run: unfinished(json, 18_000_000, '{') },
  { name: 'unfinished forms', credit: 1, run: unfinished(form, 20_000_000, part) },
  { name: 'response sockets with unfinished messages', credit: 0, run: sockets },
  { name: 'watchers of one job', credit: 1, run: watchers },
  {
    name: 'scrapes of metrics from elsewhere',
    credit: 0,
    run: ({ url }, signal) =>
      repeat(signal, smallRestMs, () => fetch(`${url}/metrics`, { signal, headers: elsewhere })),
  },
  {
    name: 'wrong API keys',
    credit: 0,
    run: ({ url }, signal, index) => {
      let made = 0;
      return repeat(signal, smallRestMs, () =>
        post({ url, key: `sk-sluice-wrong-${index}-${++made}` }, small, { signal, headers: elsewhere }),
      );
    },
  },
];
