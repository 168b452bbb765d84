import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { RoutedModel } from '../../shared/catalogue/catalogue.ts';
import type { ModelRoute } from '../../shared/catalogue/models.ts';
import { findVendorRow, type VendorRow } from '../../shared/vendors/vendors.ts';
import { orderRoutes } from '../../workers/routing/order-routes.ts';
import { RetryBudget } from '../../workers/routing/route-plan.ts';
import { chatModel } from './scripted-routes.ts';

const vendorRow = findVendorRow('openai') as VendorRow;

function routed(name: string, route: Partial<ModelRoute> = {}, id = 'model'): RoutedModel {
  const whole = { vendor: name, model: 'm', ...route };
  return { ...chatModel([whole], { id }), route: whole, vendorRow };
}

const names = (routes: readonly RoutedModel[]) => routes.map(({ route }) => route.vendor);

describe('the order of routes', () => {
  it('the order of routes is that of the list where they have none of their own', () => {
    const routes = [routed('a'), routed('b'), routed('c')];
    assert.deepEqual(names(orderRoutes(routes, undefined)), ['a', 'b', 'c']);
  });

  it('draws those of one order by their weights, and never mixes orders or models', () => {
    const routes = [
      routed('a', { order: 0, weight: 1 }),
      routed('b', { order: 0, weight: 3 }),
      routed('c', { order: 1 }),
      routed('d', { order: 1 }, 'stand-in'),
    ];
    let first = 0;
    for (let turn = 0; turn < 2000; turn++) {
      const ordered = names(orderRoutes(routes, undefined));
      assert.deepEqual(ordered.slice(2), ['c', 'd']);
      if (ordered[0] === 'b') first++;
    }
    assert.ok(first > 1400 && first < 1600, String(first));
  });

  it('begins, within an order, with those of the own region', () => {
    const routes = [
      routed('far', { order: 0, weight: 1000, region: 'us' }),
      routed('near', { order: 0, weight: 0.001, region: 'eu' }),
      routed('nearer', { order: 1, region: 'eu' }),
    ];
    assert.deepEqual(names(orderRoutes(routes, 'eu')), ['near', 'far', 'nearer']);
  });
});

describe('the budget of retries', () => {
  it('the budget of retries allows ten in a burst, then one a second and a share of the calls', () => {
    let now = 0;
    const budget = new RetryBudget(
      () => 0.1,
      () => now,
    );
    const taken = () => {
      let count = 0;
      while (budget.withdraw('one')) count++;
      return count;
    };
    assert.equal(taken(), 10);
    now += 3000;
    assert.equal(taken(), 3);
    for (let call = 0; call < 200; call++) budget.deposit('one');
    assert.ok(Math.abs(taken() - 20) <= 1);
    now += 3_600_000;
    assert.equal(taken(), 10);
    for (let call = 0; call < 100_000; call++) budget.deposit('one');
    assert.ok(Math.abs(taken() - 100) <= 1, 'what is saved up is bounded');
  });

  it('the budget of retries has ten for accounts that have retried little, beyond what one has used up', () => {
    let now = 0;
    const budget = new RetryBudget(
      () => 0.1,
      () => now,
    );
    const taken = (owner: string) => {
      let count = 0;
      while (budget.withdraw(owner)) count++;
      return count;
    };
    assert.equal(taken('failing'), 10);
    assert.equal(taken('two'), 10);
    assert.deepEqual([taken('two'), taken('three'), budget.balance], [0, 0, 0], 'it is bounded for all together');
    now += 5000;
    assert.deepEqual(
      [taken('failing'), taken('three')],
      [0, 5],
      'what is regained is for those that have retried little first',
    );
    now += 3_600_000;
    assert.deepEqual([taken('failing'), taken('three'), budget.balance], [10, 10, 0]);
  });

  it('the budget of retries is not used up by a clock that is put back', () => {
    let now = 3_600_000;
    const budget = new RetryBudget(
      () => 0.1,
      () => now,
    );
    budget.withdraw('one');
    now = 0;
    assert.equal(budget.withdraw('one'), true);
  });
});
