import type { VendorUsage } from '../vendor.ts';
import { isObject, type JsonObject } from './json-object.ts';

/** The usage of several calls as one: counts are added up, those inside of details too. Null where no call counted any. */
export function sumUsage(usages: readonly VendorUsage[]): VendorUsage {
  return usages.reduce((sum, usage) => {
    if (sum === null || usage === null) return sum ?? usage;
    return add(sum, usage);
  }, null);
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
