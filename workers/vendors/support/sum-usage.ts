import { hasCounts } from '../../../shared/money/token-counts.ts';
import type { VendorUsage } from '../vendor.ts';
import { isObject, type JsonObject } from './json-object.ts';

/** Sums the usage of several calls, including counts in details. Null if no call reported any. */
export function sumUsage(usages: readonly VendorUsage[]): VendorUsage {
  return usages.reduce((sum, usage) => {
    if (sum === null || usage === null) return sum ?? usage;
    return add(sum, usage);
  }, null);
}

/**
 * Sums the usage of all calls of a job. Null if any of them reported none that can be charged by: without it the sum is too low.
 * @param isEmbedding the calls have no output
 */
export function sumOfAll(usages: readonly VendorUsage[], isEmbedding: boolean): VendorUsage {
  return usages.every((usage) => usage !== null && hasCounts(usage, isEmbedding)) ? sumUsage(usages) : null;
}

function add(one: JsonObject, other: JsonObject): JsonObject {
  const sum = { ...one };
  for (const [name, value] of Object.entries(other)) {
    const before = sum[name];
    if (typeof before === 'number' && typeof value === 'number') sum[name] = before + value;
    else if (isObject(before) && isObject(value)) sum[name] = add(before, value);
    else sum[name] = before ?? value;
  }
  return sum;
}
