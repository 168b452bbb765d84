/**
 * Formats a line of a CSV file (RFC 4180). A text that a spreadsheet would evaluate as a formula is prefixed with an
 * apostrophe: names and tags are untrusted.
 */
export function csvLine(cells: readonly (string | number | null)[]): string {
  return `${cells.map(cellText).join(',')}\r\n`;
}

function cellText(cell: string | number | null): string {
  if (cell === null) return '';
  if (typeof cell === 'number') return String(cell);
  // After white space, too: some programs strip it first.
  const text = /^\s*[=+\-@]|^[\t\r]/.test(cell) ? `'${cell}` : cell;
  return /[",\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
