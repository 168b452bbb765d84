import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, type TestContext, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { streamed } from '../support/chat-requests.ts';
import { isSoak } from '../support/faults/load.ts';
import { startPostgres } from '../support/postgres.ts';
import { databaseDrills } from './drills/database.ts';
import { type DrillRules, deployedRules, writeDrillRules } from './drills/drill-rules.ts';
import { processDrills } from './drills/processes.ts';
import { redisDrills } from './drills/redis.ts';
import { type Drill, Stage } from './drills/stage.ts';
import { workDrills } from './drills/work.ts';

const drills = [...workDrills, ...redisDrills, ...databaseDrills, ...processDrills];
const deadlineMs = 120_000;
/** Two scrapes, and evaluations after each. */
const calmMs = 35_000;

/** How long the recording without faults is: `SLUICE_CALM_MINUTES=60` is the full one. */
const calmMinutes = Number(process.env.SLUICE_CALM_MINUTES ?? 5);

/** Two of each process, on Postgres. */
async function openCalm(stage: Stage): Promise<void> {
  const postgres = await startPostgres();
  stage.use(() => postgres.stop());
  await stage.openGateway({ databaseUrl: await postgres.createDatabase() });
  for (let count = 0; count < 2; count++) {
    await stage.startApi();
    await stage.startWorker();
  }
}

/** Seconds from the beginning of a fault until each of its alerts fires, by name. */
async function runDrill(drill: Drill, rules: DrillRules): Promise<ReadonlyMap<string, number>> {
  const stage = new Stage();
  try {
    await drill.open(stage);
    await stage.watch(rules.files);
    await delay(calmMs);
    const early = (await stage.prometheus.activeAlerts()).map(({ labels }) => labels.alertname);
    assert.deepEqual(
      early.filter((name) => drill.alerts.includes(name as string)),
      [],
      'before the fault',
    );
    const startedAt = Date.now();
    const beginning = drill.begin(stage);
    const fired = new Map<string, number>();
    while (fired.size < drill.alerts.length && Date.now() < startedAt + deadlineMs) {
      await delay(500);
      for (const { labels, state } of await stage.prometheus.activeAlerts()) {
        const name = labels.alertname as string;
        if (state !== 'firing' || !drill.alerts.includes(name) || fired.has(name)) continue;
        fired.set(name, Math.round((Date.now() - startedAt) / 1000));
      }
    }
    await beginning;
    return fired;
  } finally {
    await stage.close();
  }
}

describe('alerts in a real Prometheus', () => {
  let folder: string;
  let rules: DrillRules;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sluice-test-drills-'));
    rules = await writeDrillRules(folder);
  });
  after(() => rm(folder, { recursive: true, force: true }));

  if (isSoak) {
    test(`in ${calmMinutes} minutes of calm load no alert fires`, {
      timeout: (calmMinutes + 5) * 60_000,
    }, async (t) => {
      const stage = new Stage();
      try {
        await openCalm(stage);
        // As deployed, nothing shortened.
        await stage.watch(deployedRules);
        stage.repeat(10, () => stage.ask());
        stage.repeat(5, () => stage.ask(streamed('WORDS:40@20')));
        stage.repeat(1, () => stage.askLater());
        await delay(calmMinutes * 60_000);
        const recorded = (what: string) => stage.prometheus.query(`${what}[${calmMinutes + 1}m]))`);
        const [answered] = await stage.prometheus.query('sum(sluice_requests_total{status=~"2.."})');
        const pending = await recorded('count by (alertname) (count_over_time(ALERTS{alertstate="pending"}');
        t.diagnostic(`${answered?.value} requests answered`);
        t.diagnostic(`pending for a while: ${pending.map(({ metric }) => metric.alertname).join(', ') || 'none'}`);
        assert.ok((answered?.value ?? 0) > calmMinutes * 60 * 10);
        const fired = await recorded('count by (alertname) (count_over_time(ALERTS{alertstate="firing"}');
        assert.deepEqual(
          fired.map(({ metric }) => metric.alertname),
          [],
        );
      } finally {
        await stage.close();
      }
    });
  }

  test('each alert has a drill that raises it', () => {
    assert.deepEqual(drills.flatMap(({ alerts }) => alerts).sort(), [...rules.alerts].sort());
  });

  // Two and a half minutes each, of waiting for the most part.
  for (const drill of isSoak ? drills : []) {
    test(`when ${drill.fault}, ${drill.alerts.join(', ')} fires within two minutes`, async (t) => {
      const fired = await runDrill(drill, rules);
      for (const [alert, seconds] of fired) {
        const deployed = rules.shortened.get(alert);
        const more = deployed === undefined ? '' : `, with a for of 1m instead of ${deployed}`;
        (t as TestContext).diagnostic(`${alert} fired after ${seconds} s${more}`);
      }
      assert.deepEqual(
        drill.alerts.filter((alert) => !fired.has(alert)),
        [],
        'have not fired',
      );
    });
  }
});
