import type { VendorUsage } from '../vendors/vendor.ts';

/** The usage of several calls as one: counts are added up, those inside of details too. Null where no call counted any. */
export function sumUsage(usages: readonly VendorUsage[]): VendorUsage {
  return usages.reduce((sum, usage) => {
    if (sum === null || usage === null) return sum ?? usage;
    return add(sum, usage);
  }, null);
}

function add(one: Record<string, unknown>, other: Record<string, unknown>): Record<string, unknown> {
  const sum = { ...one };
  for (const [name, value] of Object.entries(other)) {
    const before = sum[name];
    if (typeof before === 'number' && typeof value === 'number') sum[name] = before + value;
    else if (isCounts(before) && isCounts(value)) sum[name] = add(before, value);
    else sum[name] = before ?? value;
  }
  return sum;
}

function isCounts(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
