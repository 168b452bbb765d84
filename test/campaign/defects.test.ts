import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { isSoak } from '../flow/load.ts';
import { runCampaign } from './campaign.ts';
import { type Defect, defects } from './defects.ts';
import type { ScheduleOptions } from './fault-schedule.ts';
import { findPlace, PlantedProduct } from './planted-product.ts';
import { campaignSeed } from './seed.ts';

const size = { requests: 160, clients: 24, apis: 2, workers: 2 };

/** Links fail often and for short: the one call that shows the defect has to be hit. */
function faultsFor({ faults }: Defect): ScheduleOptions {
  if (faults.length === 0) return { faults: 0, gapMs: 0 };
  const isQuick = faults.every((kind) => kind.includes('_link_') || kind.endsWith('_lost'));
  return { only: faults, ...(isQuick ? { faults: 60, gapMs: 200 } : { faults: 14, gapMs: 700 }) };
}

describe('planted defects', () => {
  test('each has its one place in the build', () => {
    for (const defect of defects) findPlace(defect);
  });

  // A campaign each, half a minute or more: in the soak all, else the one that shows soonest.
  for (const defect of isSoak ? defects : []) {
    test(`the campaign notices that ${defect.name}`, async (t) => {
      const product = new PlantedProduct(defect);
      try {
        const { violations, seed, figures } = await runCampaign({
          ...size,
          ...{ seed: campaignSeed(), product: product.folder, answers: defect.answers },
          ...faultsFor(defect),
        });
        const broken = [...new Set(violations.map(({ rule }) => rule))];
        t.diagnostic(`seed ${seed}, broken: ${broken.join(', ')}, ${JSON.stringify(figures.seconds)}`);
        assert.ok(
          defect.rules.some((rule) => broken.includes(rule)),
          `seed ${seed}: expected one of ${defect.rules.join(', ')}, got: ${broken.join(', ') || 'none'}`,
        );
      } finally {
        product.remove();
      }
    });
  }
});
