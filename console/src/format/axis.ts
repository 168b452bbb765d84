/** The numbers along an axis, from zero, and their common format. */
interface Axis {
  readonly ticks: readonly number[];
  readonly format: (value: number) => string;
}

/** Determines an axis from the largest value. */
export type AxisOf = (max: number) => Axis;

/** Maximum number of intervals. */
const spaces = 4;

/** The smallest round number that is not smaller. */
function roundUp(value: number): { readonly step: number; readonly decimals: number } {
  const exponent = Math.floor(Math.log10(value));
  const power = 10 ** exponent;
  // The last digits of a computed value are noise.
  const factor = [1, 2, 2.5, 5].find((one) => one * power >= value * 0.999_999) ?? 10;
  return { step: factor * power, decimals: Math.max(0, (factor === 2.5 ? 1 : 0) - exponent) };
}

interface Form {
  /** Value of one unit of the written numbers; left out: 1. */
  readonly size?: number;
  readonly before?: string;
  readonly behind?: string;
  readonly minDecimals?: number;
  readonly isWhole?: boolean;
}

function axis(max: number, { size = 1, before = '', behind = '', minDecimals = 0, isWhole = false }: Form): Axis {
  const raw = max > 0 ? max / size / spaces : 1;
  const { step, decimals } = roundUp(isWhole ? Math.max(1, Math.ceil(raw)) : raw);
  const steps = Math.max(1, Math.ceil((max / size / step) * 0.999_999));
  const written = new Intl.NumberFormat('en-US', {
    minimumFractionDigits: Math.max(minDecimals, decimals),
    maximumFractionDigits: Math.max(minDecimals, decimals),
  });
  return {
    ticks: Array.from({ length: steps + 1 }, (_, index) => index * step * size),
    // Zero is the same in every unit.
    format: (value) => (value === 0 && before === '' ? '0' : `${before}${written.format(value / size)}${behind}`),
  };
}

/** `0, 4K, 8K, 12K`; small counts are written out. */
export const countAxis: AxisOf = (max) => {
  if (max < 10_000) return axis(max, { isWhole: true });
  if (max < 1e6) return axis(max, { size: 1000, behind: 'K' });
  return max < 1e9 ? axis(max, { size: 1e6, behind: 'M' }) : axis(max, { size: 1e9, behind: 'B' });
};

/** `$0.00, $0.25, $0.50`; tiny amounts in millionths of a dollar: `0, 25 µ$, 50 µ$`. */
export const moneyAxis: AxisOf = (max) => {
  if (max > 0 && max < 0.001) return axis(max, { size: 1e-6, behind: ' µ$' });
  return axis(max, { before: '$', minDecimals: max < 100 ? 2 : 0 });
};

/** For ms: all in milliseconds, seconds, minutes or hours. */
export const durationAxis: AxisOf = (max) => {
  if (max < 1000) return axis(max, { behind: ' ms', isWhole: true });
  if (max < 120_000) return axis(max, { size: 1000, behind: ' s' });
  return max < 7_200_000 ? axis(max, { size: 60_000, behind: ' min' }) : axis(max, { size: 3_600_000, behind: ' h' });
};
