import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { isSoak } from '../support/faults/load.ts';
import { databaseDrills } from './drills/database.ts';
import { processDrills } from './drills/processes.ts';
import { redisDrills } from './drills/redis.ts';
import { type Drill, Stage } from './drills/stage.ts';
import { evaluate, type Page, scrape, type Verdict } from './drills/timeline.ts';
import { workDrills } from './drills/work.ts';

const drills = [...workDrills, ...redisDrills, ...databaseDrills, ...processDrills];
/** Records that nobody can read count for three minutes after they are gone. */
const deadlineMs = 300_000;
/** Between two scrapes. */
const pageMs = 2000;

/** The verdict on what real processes show before a fault, in it and after it, which promtool makes last for an hour and more. */
async function recordDrill(drill: Drill, folder: string): Promise<Verdict> {
  const stage = new Stage();
  try {
    await drill.open(stage);
    await delay(pageMs);
    const calm = await scrape(stage.targets);
    const fault: Page[] = [];
    const after: Page[] = [];
    const judge = () => evaluate({ calm, fault, after: after.slice(-2) }, drill.alerts, folder);
    let verdict: Verdict = { fault: 'not begun', after: 'not over' };
    const until = async (pages: Page[], part: keyof Verdict): Promise<void> => {
      const deadline = Date.now() + deadlineMs;
      while (verdict[part] !== '' && Date.now() < deadline) {
        await delay(pageMs);
        pages.push(await scrape(stage.targets));
        verdict = await judge();
      }
    };
    const beginning = drill.begin(stage);
    await until(fault, 'fault');
    if (verdict.fault !== '') return verdict;
    await stage.endRepeated();
    await beginning;
    await drill.end?.(stage);
    await until(after, 'after');
    return verdict;
  } finally {
    await stage.close();
  }
}

describe('alerts over what real processes show', () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sluice-test-timeline-'));
  });
  after(() => rm(folder, { recursive: true, force: true }));

  // Half a minute each, of waiting for the most part.
  for (const drill of isSoak ? drills : []) {
    test(`when ${drill.fault}, ${drill.alerts.join(', ')} fires, and ends once that is over`, async () => {
      assert.deepEqual(await recordDrill(drill, folder), { fault: '', after: '' });
    });
  }
});
