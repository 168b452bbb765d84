const nanosPerDollar = 1_000_000_000;

/** Formats nano-dollars as dollars in plain decimals: `0.000012345`, never with an exponent. */
export function formatDollars(nanos: number): string {
  const amount = Math.abs(nanos);
  const whole = Math.floor(amount / nanosPerDollar);
  const fraction = String(amount % nanosPerDollar)
    .padStart(9, '0')
    .replace(/0+$/, '');
  return `${nanos < 0 ? '-' : ''}${whole}${fraction && `.${fraction}`}`;
}

/** Parses dollars in plain decimals, exactly; undefined if malformed, with more than nine decimals, or too large. */
export function parseDollars(text: string): number | undefined {
  const [, sign, whole, fraction = ''] = /^(-?)(\d{1,8})(?:\.(\d{1,9}))?$/.exec(text) ?? [];
  if (whole === undefined) return undefined;
  const amount = Number(whole) * nanosPerDollar + Number(fraction.padEnd(9, '0'));
  if (!Number.isSafeInteger(amount)) return undefined;
  return sign === '-' && amount > 0 ? -amount : amount;
}

/** Nano-dollars as dollars for JSON responses. */
export function toDollars(nanos: number): number {
  return nanos / nanosPerDollar;
}
