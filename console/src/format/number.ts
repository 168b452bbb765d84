const plain = new Intl.NumberFormat('en-US', { maximumFractionDigits: 2 });
const compact = new Intl.NumberFormat('en-US', { notation: 'compact', maximumFractionDigits: 1 });
const share = new Intl.NumberFormat('en-US', { style: 'percent', maximumFractionDigits: 1 });

/** `12,345`; an unknown number is a dash. */
export function count(value: number | null | undefined): string {
  return value === null || value === undefined ? '–' : plain.format(value);
}

/** `12.3K`, for axes and tiles. */
export function shortCount(value: number | null | undefined): string {
  if (value === null || value === undefined) return '–';
  return Math.abs(value) < 10_000 ? plain.format(value) : compact.format(value);
}

/** Part of a whole as `4.2%`; a dash if the whole is 0. */
export function percent(part: number, of: number): string {
  return of === 0 ? '–' : share.format(part / of);
}

/** Formats a number of bytes: `1.5 MB`. */
export function bytes(value: number | null | undefined): string {
  if (value === null || value === undefined) return '–';
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  const step = value < 1000 ? 0 : Math.min(units.length - 1, Math.floor(Math.log10(value) / 3));
  return `${plain.format(Math.round((value / 1000 ** step) * 10) / 10)} ${units[step]}`;
}
