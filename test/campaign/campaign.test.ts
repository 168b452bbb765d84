import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { isSoak } from '../support/faults/load.ts';
import { type CampaignReport, runCampaign } from './campaign.ts';
import { campaignSeed } from './seed.ts';

/**
 * Without faults but those of the vendor and of clients that leave; with SLUICE_SOAK (`npm run soak -- campaign`) in full.
 * A failure prints its seed; the same requests and faults come again, in the same order, with
 * `SLUICE_CAMPAIGN_SEED=<seed> npm run soak -- campaign/campaign`.
 */
const size = isSoak
  ? { requests: 50_000, faults: 2000, clients: 60, gapMs: 400, apis: 3, workers: 4 }
  : { requests: 250, faults: 0, clients: 24, gapMs: 1200, apis: 2, workers: 2 };

/** The first of each broken rule, and how many there were. */
function summary({ violations, seed }: CampaignReport): string {
  const rules = [...new Set(violations.map(({ rule }) => rule))];
  const lines = rules.map((rule) => {
    const details = violations.filter((violation) => violation.rule === rule).map(({ detail }) => detail);
    return `${rule}, ${details.length} times:\n  ${details.slice(0, 5).join('\n  ')}`;
  });
  return `seed ${seed}\n${lines.join('\n')}`;
}

describe('requests under faults', () => {
  test('no token is lost or doubled, every request ends once and is charged once, and nothing is left', async (t) => {
    const report = await runCampaign({ ...size, seed: campaignSeed() });
    t.diagnostic(`seed ${report.seed}: ${JSON.stringify(report.figures)}`);
    assert.equal(report.violations.length, 0, summary(report));
  });
});
