const whole = new Intl.NumberFormat('en-US', { style: 'currency', currency: 'USD' });
const small = new Intl.NumberFormat('en-US', {
  style: 'currency',
  currency: 'USD',
  minimumFractionDigits: 2,
  maximumFractionDigits: 4,
});
/** A request may cost millionths of a dollar: shows the first three significant digits, and no trailing zeros. */
const tiny = new Intl.NumberFormat('en-US', { style: 'currency', currency: 'USD', maximumSignificantDigits: 3 });

/** Formats dollars: `$1,234.56`, `$0.0312`, `$0.000012`; an unknown amount is a dash. */
export function money(dollars: number | null | undefined): string {
  if (dollars === null || dollars === undefined) return '–';
  const size = Math.abs(dollars);
  if (size === 0) return '$0.00';
  if (size < 0.01) return tiny.format(dollars);
  return size < 1 ? small.format(dollars) : whole.format(dollars);
}
