/** Which numbers a field takes. */
export interface AmountRange {
  /** Maximum number of decimals; 0: whole numbers only. */
  readonly decimals: number;
  readonly min?: number;
  readonly max?: number;
}

/** What is typed into a field: a number, or what is wrong with it. Neither: nothing is typed. */
interface ReadAmount {
  readonly value?: number;
  readonly problem?: string;
}

/** All kinds of spaces and apostrophes that separate thousands. */
const gaps = /[\s'’]/gu;
/** The sign, thousands with their separator or digits without one, and the decimals with theirs. */
const written = /^(-?)\$?(?:([1-9]\d{0,2}(?:([,. ])\d{3})(?:\3\d{3})*)|(\d*))(?:([.,])(\d*))?$/;

/**
 * Reads a number as people write them: `1,000`, `1,000.50`, `12,50`, `1.000,50` and `1 000`. What can be meant in two ways, as
 * `1.000` where decimals are allowed or `10,0000`, is a problem, and so is anything else: a wrong amount must not pass for a right one.
 */
export function readAmount(text: string, range: AmountRange): ReadAmount {
  const trimmed = text.trim();
  if (trimmed === '') return {};
  const parts = written.exec(trimmed.replace('−', '-').replace(gaps, ' '));
  if (parts === null) return { problem: unreadable(range) };
  const [, sign = '', grouped = '', separator, plain = '', point, behind = ''] = parts;
  if (`${grouped}${plain}${behind}` === '' || (point !== undefined && point === separator)) {
    return { problem: unreadable(range) };
  }
  const whole = grouped.replaceAll(/\D/g, '') || plain || '0';
  const decimals = behind.replace(/0+$/, '');
  const isOneOfTwo = separator === '.' && grouped.length < 8 && point === undefined && range.decimals > 0;
  if (isOneOfTwo) return { problem: `Write ${whole} or ${grouped}0: this can be either.` };
  // `10,0000`: thousands with a digit too many, or decimals.
  const isEither = point === ',' && Number(whole) > 0 && behind.length > 3;
  if (isEither) return { problem: `Write ${whole}${behind} or ${whole}.${behind}: this can be either.` };
  if (decimals.length > range.decimals) return { problem: tooExact(range.decimals) };
  return inside(Number(`${sign}${whole}.${decimals || 0}`), range);
}

function unreadable({ decimals }: AmountRange): string {
  return decimals === 0 ? 'Write a whole number, such as 1000.' : 'Write an amount such as 1000 or 12.50.';
}

function tooExact(decimals: number): string {
  return decimals === 0 ? 'Write a whole number.' : `Write at most ${decimals} decimals.`;
}

function inside(value: number, { decimals, min, max }: AmountRange): ReadAmount {
  if (min !== undefined && value < min) return { problem: `At least ${amountText(min, decimals)}.` };
  if (max !== undefined && value > max) return { problem: `At most ${amountText(max, decimals)}.` };
  return { value };
}

/** The number that is typed; null: nothing is. @throws Error for anything else: a form with it is not sent */
export function amountOf(text: string, range: AmountRange): number | null {
  const { value = null, problem } = readAmount(text, range);
  if (problem !== undefined) throw new Error(problem);
  return value;
}

/** Writes a number so that `readAmount` reads the same: `1,000`, `12.50`. */
export function amountText(value: number, decimals: number): string {
  const least = Number.isInteger(value) ? 0 : Math.min(2, decimals);
  const format = (minimumFractionDigits: number): string =>
    new Intl.NumberFormat('en-US', { minimumFractionDigits, maximumFractionDigits: decimals }).format(value);
  const text = format(least);
  // `1.125` could be a thousand and more.
  return /^-?[1-9]\d{0,2}\.\d{3}$/.test(text) ? format(4) : text;
}
