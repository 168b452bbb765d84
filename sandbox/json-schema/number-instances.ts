import type { JsonObject } from '../json-value.ts';
import { numberAt } from './schema.ts';

/**
 * Candidate numbers for a schema, most likely first.
 * @param variant different variants give different numbers, if the bounds leave room.
 */
export function* numberInstances(schema: JsonObject, integer: boolean, variant: number): Generator<number> {
  const low = Math.max(
    numberAt(schema, 'minimum') ?? Number.NEGATIVE_INFINITY,
    numberAt(schema, 'exclusiveMinimum') ?? Number.NEGATIVE_INFINITY,
  );
  const high = Math.min(
    numberAt(schema, 'maximum') ?? Number.POSITIVE_INFINITY,
    numberAt(schema, 'exclusiveMaximum') ?? Number.POSITIVE_INFINITY,
  );
  const divisor = numberAt(schema, 'multipleOf');
  if (divisor !== undefined && divisor > 0) yield* multiples(divisor, integer, low, high, variant);
  else if (integer) {
    const nearest = Math.ceil(nearestToOne(low, high));
    for (let step = 0; step < 3; step += 1) {
      yield nearest + variant + step;
      yield Math.floor(nearestToOne(low, high)) - variant - step;
    }
  } else {
    yield nearestToOne(low, high) + variant;
    yield low + 1 + variant;
    yield high - 1 - variant;
    // Between close bounds: a half, third, quarter … of the way.
    yield low + (high - low) / (variant + 2);
  }
}

/** The number within the bounds that is closest to 1: small and positive if possible. */
function nearestToOne(low: number, high: number): number {
  return Math.min(Math.max(1, low), high);
}

function* multiples(divisor: number, integer: boolean, low: number, high: number, variant: number): Generator<number> {
  const start = Math.ceil(nearestToOne(low, high) / divisor);
  let found = 0;
  for (let step = 0; step < 2000; step += 1) {
    for (const factor of step === 0 ? [start] : [start + step, start - step]) {
      const number = factor * divisor;
      // 3 × 0.1 is not a multiple of 0.1 in floating point: such numbers are skipped.
      if (number < low || number > high || !Number.isInteger(number / divisor)) continue;
      if (integer && !Number.isInteger(number)) continue;
      if (found >= variant) yield number;
      found += 1;
      if (found > variant + 3) return;
    }
  }
}
