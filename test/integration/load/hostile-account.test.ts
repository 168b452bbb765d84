import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { after, before, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { queueKeysPrefix } from '../../../shared/redis/keys.ts';
import { held } from '../../support/chat-requests.ts';
import { eventually } from '../../support/eventually.ts';
import { type Attack, attacks } from '../../support/faults/attacks.ts';
import { endlessConfiguration } from '../../support/faults/endless-vendor.ts';
import { freePort } from '../../support/free-port.ts';
import { sourceProduct, TestGateway } from '../../support/gateway.ts';
import { makeLimitedAccount } from '../../support/limited-account.ts';
import { makeApiKey } from '../../support/make-api-key.ts';
import { productFlags } from '../../support/product-flags.ts';
import { typescriptFlags } from '../../support/typescript-flags.ts';

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

let gateway: TestGateway;
let victim: string;
/** Of the vendor of the hostile process. */
let vendorPort: number;
/** Times of all calm phases, in ms; and the p95 during each attack. */
const calmTimes: number[] = [];
const hurtBy = new Map<string, number>();

before(async () => {
  // So few slots that the queue fills in the time of a phase; the tenth of it that stays free is more than the attack's connections.
  const few = isSoak
    ? { SLUICE_QUEUE_LIMIT: '1000', WORKER_CONCURRENCY_CHAT: '40' }
    : { SLUICE_QUEUE_LIMIT: '100', WORKER_CONCURRENCY_CHAT: '10' };
  const settings = { ...few, SLUICE_BODIES_MIB: '64', TRUST_PROXY: '1' };
  // As operators start it: who waits for whom depends on how garbage is collected.
  const nodeFlags = productFlags(sourceProduct, 'api');
  vendorPort = await freePort();
  gateway = await TestGateway.start({ settings, nodeFlags, configuration: endlessConfiguration(vendorPort) });
  victim = await makeApiKey(gateway, { accountId: 'victim' });
});
after(() => gateway?.stop());

/** Waits until the worker runs nothing: what an attack leaves in the queue would be part of the next one's calm. */
async function untilCalm(): Promise<void> {
  const redis = new Redis(gateway.redisUrl);
  try {
    await eventually(async () => assert.equal(await redis.exists(`${queueKeysPrefix('chat')}active`), 0), 60_000);
  } finally {
    redis.disconnect();
  }
}

const small = JSON.stringify(held('Hi', { max_tokens: 5 }));
const large = JSON.stringify(held('x'.repeat(300_000), { max_tokens: 5 }));

/** The victim's steady load: small requests, and a large one among them. */
async function load(ms: number): Promise<Phase> {
  const phase: Phase = { times: [], statuses: new Map() };
  const until = Date.now() + ms;
  const one = async (body: string, restMs: number): Promise<void> => {
    do {
      const started = performance.now();
      const headers = { authorization: `Bearer ${victim}`, 'content-type': 'application/json' };
      const answer = await gateway.fetch(path, { method: 'POST', body, headers });
      await answer.text();
      phase.times.push(performance.now() - started);
      phase.statuses.set(answer.status, (phase.statuses.get(answer.status) ?? 0) + 1);
      await delay(restMs);
    } while (Date.now() < until);
  };
  await Promise.all([one(small, 20), one(small, 20), one(large, 200)]);
  return phase;
}

let lastCalm: Phase | undefined;

/** What the victim is answered without an attack: before each of them in the soak, whose times are looked at, and else once. */
async function calmPhase(): Promise<Phase> {
  if (!isSoak && lastCalm !== undefined) return lastCalm;
  lastCalm = await load(phaseMs);
  calmTimes.push(...lastCalm.times);
  return lastCalm;
}

function p95(times: readonly number[]): number {
  const sorted = [...times].sort((one, other) => one - other);
  return sorted[Math.floor(sorted.length * 0.95)] ?? 0;
}

/** Starts the attack in a process of its own: in this one its work would be the victim's time. Returns what ends it. */
async function startAttack({ name }: Attack, key: string): Promise<() => Promise<void>> {
  const args = [name, String(width), gateway.url, key, String(vendorPort)];
  const child = fork(new URL('../../support/faults/hostile-process.ts', import.meta.url), args, {
    execArgv: [...typescriptFlags],
  });
  await once(child, 'message');
  return async () => {
    child.kill('SIGKILL');
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  };
}

describe('one hostile account', () => {
  for (const attack of attacks) {
    test(`an account gets only 200s during an attack by another one: ${attack.name}`, { timeout }, async (t) => {
      const calm = await calmPhase();
      const { key } = await makeLimitedAccount(gateway, { credit: attack.credit * dollar });
      const end = await startAttack(attack, key);
      try {
        const hurt = await load(phaseMs);
        const [before, during] = [p95(calm.times), p95(hurt.times)];
        hurtBy.set(attack.name, during);
        const ratio = (during / before).toFixed(2);
        t.diagnostic(
          `p95 ${before.toFixed(0)} -> ${during.toFixed(0)} ms (${ratio} times), ${hurt.times.length} answers`,
        );
        assert.deepEqual([...hurt.statuses.keys()], [200]);
        assert.ok(hurt.times.length >= 3, 'the victim was served');
      } finally {
        await end();
        await untilCalm();
      }
    });
  }

  test('the p95 of an account during the attacks, beside all calm phases together', (t) => {
    assert.ok(calmTimes.length > 0);
    const calm = p95(calmTimes);
    t.diagnostic(`p95 of ${calmTimes.length} answers in calm: ${calm.toFixed(1)} ms`);
    for (const [name, during] of hurtBy) t.diagnostic(`${name}: ${(during / calm).toFixed(2)} times`);
  });
});
