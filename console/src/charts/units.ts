import { type AxisOf, countAxis, durationAxis, moneyAxis } from '../format/axis.ts';
import { money } from '../format/money.ts';
import { shortCount } from '../format/number.ts';
import { duration } from '../format/time.ts';

/** A unit of a chart's values. */
export interface Unit {
  /** Formats one value; null: nothing was measured. */
  readonly format: (value: number | null) => string;
  /** Formats the values along an axis. */
  readonly axis: AxisOf;
}

export const units = {
  money: { format: money, axis: moneyAxis },
  count: { format: shortCount, axis: countAxis },
  /** Ms. */
  duration: { format: duration, axis: durationAxis },
} as const satisfies Record<string, Unit>;

export type UnitName = keyof typeof units;
