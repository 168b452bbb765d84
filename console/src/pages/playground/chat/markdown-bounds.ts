/** Maximum length, in characters, of an answer shown as Markdown; while it grows it is parsed many times. */
const maxChars = 40_000;
const maxGrowingChars = 20_000;
const maxLines = 2_000;
/** Opening brackets of links, pictures and footnotes. */
const maxBrackets = 2_000;
/** Strikethrough marks: each is compared with those before it. */
const maxTildes = 500;
/** Nested quotes. */
const maxDepth = 20;
/** A short table row is padded to the columns of its header. */
const maxCells = 8_000;

/**
 * Whether a text may be parsed as Markdown. Some texts take a parser minutes, or become millions of elements: an answer must
 * not be able to freeze the page. Those are shown as plain text.
 */
export function isBoundedMarkdown(text: string, isGrowing: boolean): boolean {
  if (text.length > (isGrowing ? maxGrowingChars : maxChars)) return false;
  if (countOf(text, '[') > maxBrackets || countOf(text, '~') > maxTildes) return false;
  const lines = text.split('\n');
  if (lines.length > maxLines) return false;
  const columns = lines.reduce((max, line) => Math.max(max, columnsUnder(line)), 0);
  return columns * lines.length <= maxCells && lines.every((line) => depthOf(line) <= maxDepth);
}

function countOf(text: string, mark: string): number {
  return text.split(mark).length - 1;
}

/** The columns of a table whose header ends with this line: `|---|---|`. */
function columnsUnder(line: string): number {
  return /^[\s>\d.)*+|:-]+$/.test(line) ? countOf(line, '|') : 0;
}

/** The number of quotes and lists that a line is nested in. */
function depthOf(line: string): number {
  return /^[\s>*+\-\d.)]*/.exec(line)?.[0].replace(/[\s\d]/g, '').length ?? 0;
}
