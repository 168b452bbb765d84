/**
 * Formats a line of a CSV file (RFC 4180). What a spreadsheet would evaluate as a formula is prefixed with an apostrophe: names and
 * tags are untrusted.
 */
export function csvLine(cells: readonly (string | number | null)[]): string {
  return `${cells.map(cellText).join(',')}\r\n`;
}

/** The first signs of formulas, also in the full width of East Asian keyboards, after white space that some programs strip. */
const formula = /^\s*[=+\-@＝＋－＠]|^[\t\r]/;
/** Where a formula may begin in the middle: spreadsheets of many countries split lines at semicolons, and then heed no quotes. */
const innerFormula = /(?=[=+\-@＝＋－＠])(?<=[;\t\r\n]["\s]*)/g;

function cellText(cell: string | number | null): string {
  if (cell === null) return '';
  if (typeof cell === 'number') return String(cell);
  const text = `${formula.test(cell) ? "'" : ''}${cell.replace(innerFormula, "'")}`;
  return /[",\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
