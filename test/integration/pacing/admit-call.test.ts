import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { createCatalogue } from '../../../shared/catalogue/catalogue.ts';
import { routingDefaults } from '../../../shared/config/routing-settings.ts';
import type { CapacityLimits } from '../../../shared/config/vendor-settings.ts';
import { Pacer } from '../../../workers/pacing/pacer.ts';
import { SaturatedError } from '../../../workers/pacing/saturated-error.ts';
import { type AdmittedCall, admitCall, type JobLine } from '../../../workers/routing/admit-call.ts';
import { RouteBreakers } from '../../../workers/routing/route-breakers.ts';
import { RoutePlan } from '../../../workers/routing/route-plan.ts';
import { VendorPool } from '../../../workers/routing/vendor-pool.ts';
import { chatModel } from '../../routing/scripted-routes.ts';
import { JobFixture } from '../../support/faults/job-fixture.ts';
import { vendorSettings } from '../../support/vendor-settings.ts';

describe('the admission of calls within the limits of vendors', () => {
  let jobs: JobFixture;
  before(async () => {
    jobs = await JobFixture.start();
  });
  after(() => jobs?.stop());

  /** Asks for a call of a model with two routes of vendors with such a limit. @param lines jobs that wait for them, by vendor */
  async function admit(limit: CapacityLimits, lines: Readonly<Record<string, JobLine>>): Promise<AdmittedCall> {
    await jobs.redis.flushall();
    const vendors = Object.fromEntries(
      ['one', 'other'].map((name) => [
        name,
        { ...vendorSettings(name), limits: { vendor: limit, key: {}, models: {} } },
      ]),
    );
    const models = [chatModel(Object.keys(vendors).map((vendor) => ({ vendor, model: 'm' })))];
    const pool = new VendorPool(vendors);
    const breakers = new RouteBreakers(
      () => routingDefaults,
      () => undefined,
    );
    const log = { warn: (about: object) => assert.fail(JSON.stringify(about)) };
    const pacer = await Pacer.open({ redis: jobs.redis, clock: { now: Date.now }, log }, 'worker', vendors);
    const plan = new RoutePlan(
      createCatalogue({ vendors, models }).routes('model', 'chat'),
      breakers,
      pool,
      routingDefaults,
      'somebody',
    );
    const demand = {
      inputTokens: 10,
      maxOutput: 10,
      maxRetryAfterMs: 1000,
      lineOf: (route: string) => lines[route.replace('/m', '')],
    };
    try {
      return await admitCall(pacer, plan, plan.first().target, demand, new AbortController().signal);
    } finally {
      await pacer.close();
      await pool.close();
    }
  }

  test('a job waits where the line is the shortest, not where the next job is released the soonest', async () => {
    const lines = {
      one: { nextMs: 50, intervalMs: 1000, waiting: 100 },
      other: { nextMs: 90, intervalMs: 1000, waiting: 2 },
    };
    await assert.rejects(admit({ rpm: 60 }, lines), (error) => {
      assert.ok(error instanceof SaturatedError, String(error));
      assert.equal(error.route, 'other/m');
      return true;
    });
  });

  test('a line that waits for the time that a refusal told is no reason not to ask for capacity that has come meanwhile', async () => {
    const line = { nextMs: 3_000_000, intervalMs: 1000, waiting: 1 };
    const { slot, target } = await admit({ rpm: 60 }, { one: line, other: line });
    assert.deepEqual([target.routed.route.vendor, slot?.waitMs], ['one', 0]);
  });
});
