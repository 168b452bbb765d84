import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { isSoak } from '../support/faults/load.ts';
import { runCampaign } from './campaign.ts';
import { campaignFor, defects } from './defects.ts';
import { findPlace, PlantedProduct } from './planted-product.ts';
import { campaignSeed } from './seed.ts';

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
          ...campaignFor(defect),
          ...{ seed: campaignSeed(), product: product.folder },
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
