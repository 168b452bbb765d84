import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { releaseBefore } from '../release-before/release-before.mjs';
import { isSoak } from '../support/faults/load.ts';
import { builtProduct } from '../support/gateway.ts';
import { startPostgres } from '../support/postgres.ts';
import { rollUnderLoad } from './rolling-upgrade.ts';
import { campaignSeed } from './seed.ts';

/** Ten minutes in the soak, the replacements of processes among them. */
const size = isSoak
  ? { phaseSeconds: 75, clients: 24, balancerCheckMs: 1000, lameDuckSeconds: 3 }
  : { phaseSeconds: 1, clients: 8, balancerCheckMs: 250, lameDuckSeconds: 2, answers: { gapMs: 5, firstMs: 100 } };

describe('an upgrade from the release before this one, and the way back', () => {
  test('with both releases side by side in every pairing no request fails, and the ledger has charged what the vendor served', async (t) => {
    const postgres = await startPostgres();
    try {
      const report = await rollUnderLoad({
        ...{ ...size, seed: campaignSeed(), databaseUrl: await postgres.createDatabase() },
        builds: { old: releaseBefore, new: builtProduct },
      });
      const { seed, records, failures, refused, violations, wholeInPhase, sums } = report;
      t.diagnostic(
        `seed ${seed}: ${records.length} requests, ${failures.length} failed, ${refused} refused by busy processes`,
      );
      for (const [phase, kinds] of Object.entries(wholeInPhase)) t.diagnostic(`${phase}: ${JSON.stringify(kinds)}`);
      t.diagnostic(`vendor ${JSON.stringify(sums.vendor)}, ledger ${JSON.stringify(sums.ledger)}`);
      if (failures.length > 0) t.diagnostic(`health checks: ${report.failedChecks.join('; ').slice(0, 4000)}`);
      assert.deepEqual(failures, []);
      assert.deepEqual(violations.slice(0, 10), []);
      assert.deepEqual(
        { rows: sums.ledger.rows, cost: sums.ledger.cost },
        { rows: sums.vendor.calls, cost: sums.vendor.cost },
      );
      for (const [phase, kinds] of Object.entries(wholeInPhase)) {
        assert.ok(
          Object.values(kinds).every((count) => count > 0),
          `${phase}: ${JSON.stringify(kinds)}`,
        );
      }
      // The full figures are of a machine that is not too busy for them.
      if (isSoak) assert.equal(refused, 0);
    } finally {
      await postgres.stop();
    }
  });
});
