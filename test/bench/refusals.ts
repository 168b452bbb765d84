/**
 * What a refusal costs an api process: `node --import tsx test/bench/refusals.ts [SECONDS]`. Fails when one kind costs more than
 * 30 µs of CPU. Needs a build.
 *
 * The api's CPU in a window of refusals only, less what it takes at rest, over their number. One that is short of CPU refuses nine
 * tenths of the requests: what the rest cost was measured before, under the same load. It is made to believe that it is short of
 * CPU by false figures of its event loop. The load is all that 64 connections can send, as in the bench's case of held requests.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { held } from '../support/chat-requests.ts';
import { TestGateway } from '../support/gateway.ts';
import { makeApiKey } from '../support/make-api-key.ts';
import { PacedLoad } from './paced-load.ts';
import { cpuMicroseconds } from './process-usage.ts';

const seconds = Number(process.argv[2] ?? 10);
/** Whenever a connection has no request. */
const fullLoad = { perSecond: Number.POSITIVE_INFINITY, connections: 64 };
const limitMicroseconds = 30;
const path = '/v1/chat/completions';
const later = { prefer: 'respond-async' };

/** Loaded into an api: from the message `overloaded` on it measures an event loop that is late by half a second. */
const falseFigures = `
import hooks from 'node:perf_hooks';
import { syncBuiltinESMExports } from 'node:module';
const real = hooks.monitorEventLoopDelay;
let isLate = false;
hooks.monitorEventLoopDelay = (...given) => {
  const found = real(...given);
  const percentile = found.percentile.bind(found);
  found.percentile = (share) => (isLate ? 520e6 : percentile(share));
  return found;
};
const use = hooks.performance.eventLoopUtilization.bind(hooks.performance);
hooks.performance.eventLoopUtilization = (...given) => (isLate ? { ...use(...given), utilization: 1 } : use(...given));
syncBuiltinESMExports();
process.on('message', (message) => { if (message === 'overloaded') isLate = true; });
`;

/** CPU of a window of load, in µs a request, without what the process takes at rest, and the answers by status. */
async function measure(
  gateway: TestGateway,
  restPerSecond: number,
  key = gateway.apiKey,
): Promise<{ readonly each: number; readonly answers: ReadonlyMap<number, number> }> {
  const pid = gateway.apis[0]?.pid as number;
  const headers = { authorization: `Bearer ${key}` };
  const load = new PacedLoad({ origin: gateway.url, path, headers, body: held('Hi'), ...fullLoad });
  await delay(3000);
  const before = { cpu: cpuMicroseconds(pid), answers: new Map(load.answers), at: performance.now() };
  await delay(seconds * 1000);
  const cpu = cpuMicroseconds(pid) - before.cpu - (restPerSecond * (performance.now() - before.at)) / 1000;
  const answers = new Map(
    [...load.answers].map(([status, count]) => [status, count - (before.answers.get(status) ?? 0)]),
  );
  await load.stop();
  const all = [...answers.values()].reduce((sum, count) => sum + count, 0);
  return { each: cpu / all, answers };
}

/** CPU that an api takes without requests, in µs a second. */
async function rest(gateway: TestGateway): Promise<number> {
  const pid = gateway.apis[0]?.pid as number;
  await delay(2000);
  const before = cpuMicroseconds(pid);
  await delay(seconds * 500);
  return (cpuMicroseconds(pid) - before) / (seconds / 2);
}

function only(answers: ReadonlyMap<number, number>, status: number): void {
  const others = [...answers].filter(([each, count]) => each !== status && count > 0);
  if (others.length > 0) throw new Error(`not all were answered with ${status}: ${JSON.stringify(others)}`);
}

async function ask(gateway: TestGateway, more: Record<string, string>, text = 'Hi'): Promise<number> {
  const response = await gateway.fetch(path, { method: 'POST', headers: more, body: JSON.stringify(held(text)) });
  await response.text();
  return response.status;
}

async function fullQueue(): Promise<number> {
  const gateway = await TestGateway.start({ workers: 0, settings: { SLUICE_QUEUE_LIMIT: '2' } });
  try {
    while ((await ask(gateway, later)) !== 503) await delay(50);
    const { each, answers } = await measure(gateway, await rest(gateway));
    only(answers, 503);
    return each;
  } finally {
    await gateway.stop();
  }
}

async function concurrency(): Promise<number> {
  const gateway = await TestGateway.start({ workers: 0 });
  try {
    const key = await makeApiKey(gateway, { concurrency: 1 });
    await ask(gateway, { ...later, authorization: `Bearer ${key}` });
    const { each, answers } = await measure(gateway, await rest(gateway), key);
    only(answers, 429);
    return each;
  } finally {
    await gateway.stop();
  }
}

async function overloaded(): Promise<{ readonly answered: number; readonly refused: number }> {
  const gateway = await TestGateway.start({ apis: 0 });
  try {
    const { child } = await gateway.startApi({
      NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(falseFigures)}`,
    });
    const restPerSecond = await rest(gateway);
    const calm = await measure(gateway, restPerSecond);
    only(calm.answers, 200);
    child.send('overloaded');
    await delay(4000);
    const { each, answers } = await measure(gateway, restPerSecond);
    const [served, refused] = [answers.get(200) ?? 0, answers.get(503) ?? 0];
    if (refused < served * 5) throw new Error(`too few were refused: ${JSON.stringify([...answers])}`);
    return { answered: calm.each, refused: (each * (served + refused) - calm.each * served) / refused };
  } finally {
    await gateway.stop();
  }
}

const cpu = await overloaded();
const figures = {
  'a request that is answered': cpu.answered,
  'refused for lack of CPU (503)': cpu.refused,
  'refused by the limit of the queue (503)': await fullQueue(),
  "refused by the key's concurrency (429)": await concurrency(),
};
for (const [what, each] of Object.entries(figures)) console.log(`${what}: ${each.toFixed(0)} µs of the api's CPU`);
const [, ...refusals] = Object.values(figures);
process.exit(refusals.some((each) => each > limitMicroseconds) ? 1 : 0);
