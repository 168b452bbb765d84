/**
 * How much longer a cached answer takes than a 404, over one connection: `node --import tsx test/bench/cache-hits.ts [REQUESTS]`.
 * Fails when the medians differ by 1 ms or more. Needs a build. The three kinds are asked in turns.
 */
import { Agent, request } from 'undici';
import { held, streamed } from '../support/chat-requests.ts';
import { TestGateway } from '../support/gateway.ts';
import { median, percentile } from './statistics.ts';

const requests = Number(process.argv[2] ?? 2000);
const limitMs = 1;

const gateway = await TestGateway.start();
const dispatcher = new Agent({ connections: 1 });
const path = '/v1/chat/completions';

interface Timed {
  readonly ms: number;
  /** What the answer says of the cache. */
  readonly cache: unknown;
}

/** Sends a request and reads its answer. @throws Error for another status than expected. */
async function time(to: string, body: object | undefined, status: number): Promise<Timed> {
  const startedAt = performance.now();
  const headers = { authorization: `Bearer ${gateway.apiKey}`, 'x-sluice-cache': '3600' };
  const method = body === undefined ? 'GET' : 'POST';
  const answer = await request(gateway.url + to, {
    method,
    dispatcher,
    headers,
    body: body === undefined ? null : JSON.stringify(body),
  });
  await answer.body.text();
  if (answer.statusCode !== status) throw new Error(`${to} was answered with ${answer.statusCode}`);
  return { ms: performance.now() - startedAt, cache: answer.headers['x-sluice-cache'] };
}

const kinds = {
  'a 404': () => time('/v1/none', undefined, 404),
  'a held hit': () => time(path, held('Hi'), 200),
  'a streamed hit': () => time(path, streamed('Hi'), 200),
};
const times = Object.entries(kinds).map(([name, run]) => ({ name, run, ms: [] as number[] }));
try {
  // What is not cached yet, and code that is not compiled yet.
  for (let warmUp = 0; warmUp < 500; warmUp++) for (const { run } of times) await run();
  for (let sent = 0; sent < requests; sent++) {
    for (const { name, run, ms } of times) {
      const timed = await run();
      if (name.endsWith('hit') && timed.cache !== 'hit') throw new Error(`${name} was none: ${timed.cache}`);
      ms.push(timed.ms);
    }
  }
} finally {
  await dispatcher.close();
  await gateway.stop();
}
const medians = times.map(({ name, ms }) => {
  const [p50, p99] = [
    median(ms),
    percentile(
      [...ms].sort((a, b) => a - b),
      0.99,
    ),
  ];
  console.log(`${name}: p50 ${p50.toFixed(2)} ms, p99 ${p99.toFixed(2)} ms`);
  return p50;
});
const [notFound = 0, ...hits] = medians;
process.exit(hits.some((hit) => hit - notFound >= limitMs) ? 1 : 0);
