/**
 * Patterns of keys: starred out by a vendor, with a typical prefix, or as long and mixed as keys are. Plain words, model ids
 * and dates do not match. Each looks at a word from its beginning only, as a caller may have written a long one: from each of its
 * characters, it would be read as often as it has characters.
 */
const keyPatterns = [
  /(?<![\w.-])[\w.-]*\*{3,}[\w.*-]*/g,
  /\b(?:sk|pk|rk|ak|gsk|xai|pplx|nvapi|hf|r8|key|fw|tgp|csk|dapi|AIza|AKIA|ASIA|eyJ)[-_]?[\w-]{12,}(?:\.[\w-]+)*/g,
  /(?<=\b(?:Bearer|Basic|Token)\s{1,9})[\w.~+/=-]{8,}/gi,
  /(?<![\w-])(?=[\w-]*[a-z])(?=[\w-]*[A-Z])(?=[\w-]*\d)[\w-]{24,}\b/g,
  /\b[0-9a-f]{32,}\b/gi,
];

/** Replaces anything that looks like a key. */
export function withoutKeys(text: string): string {
  return keyPatterns.reduce((rest, pattern) => rest.replace(pattern, '[key]'), text);
}

/** Ids, field names and short values are not prompt text: without them a message would be useless. */
const plainName = /^[\w.:/-]{0,40}$/;
const minCharacters = 4;
/** Runs of at least this many characters shared by a message and a request come from the request; shorter ones are coincidence. */
const minRun = 24;
/** Finds each run that is longer than `minRun` by at least this many characters. */
const stride = 8;
/** Maximum number of characters of a request's strings to compare: more takes too long. */
const maxLooked = 1024 * 1024;

/** A message may quote JSON that quotes JSON; deeper ones are not met. */
const maxEscapes = 3;
const escapeSequence = /\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(["'\\/nrtbf]))/g;
const escapedCharacters: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t', b: '\b', f: '\f' };

/** A file's name that consists of one word is not told apart from the word itself. */
const singleWord = /^\w*$/;

/**
 * Removes quotes of the request from a vendor's message: prompts, texts of tools, names of files and anything else written by the
 * caller, also where the message shows them escaped, as JSON and Python do.
 * @param request JSON text
 * @param files names of the files that were sent with it
 * @returns undefined if the request is too long to check, or not JSON
 */
export function withoutWordsOf(message: string, request: string, files: readonly string[] = []): string | undefined {
  // Even parsing it would block other requests.
  if (request.length > 2 * maxLooked) return undefined;
  const texts = stringsOf(request);
  if (texts === undefined) return undefined;
  texts.push(...files.filter((name) => !singleWord.test(name)));
  if (texts.reduce((length, text) => length + text.length, 0) > maxLooked) return undefined;
  let rest = withoutTexts(message, texts);
  let removed = message.length - rest.length;
  let plain = message;
  for (let round = 0; round < maxEscapes && plain.includes('\\'); round++) {
    plain = unescaped(plain);
    const plainRest = withoutTexts(plain, texts);
    // Unless that shows more of the request, the message stays as it was written.
    if (plain.length - plainRest.length > removed) [rest, removed] = [plainRest, plain.length - plainRest.length];
  }
  return rest;
}

/** A text without its outermost escapes. */
function unescaped(text: string): string {
  return text.replace(escapeSequence, (_, unit: string | undefined, byte: string | undefined, sign: string) =>
    sign === undefined
      ? String.fromCharCode(Number.parseInt((unit ?? byte) as string, 16))
      : (escapedCharacters[sign] ?? sign),
  );
}

function withoutTexts(message: string, texts: readonly string[]): string {
  const runs = new Set<string>();
  for (let at = 0; at + minRun <= message.length; at++) runs.add(message.slice(at, at + minRun));
  return texts.reduce((rest, text) => withoutText(rest, text, runs), message);
}

function withoutText(message: string, text: string, runs: ReadonlySet<string>): string {
  let rest = text.length >= minCharacters && text.length <= message.length ? message.replaceAll(text, '[…]') : message;
  for (let at = 0; at + minRun <= text.length; at += stride) {
    if (!runs.has(text.slice(at, at + minRun))) continue;
    const found = rest.indexOf(text.slice(at, at + minRun));
    if (found < 0) continue;
    let [from, to, start, end] = [found, found + minRun, at, at + minRun];
    while (from > 0 && start > 0 && rest[from - 1] === text[start - 1]) [from, start] = [from - 1, start - 1];
    while (to < rest.length && end < text.length && rest[to] === text[end]) [to, end] = [to + 1, end + 1];
    rest = `${rest.slice(0, from)}[…]${rest.slice(to)}`;
  }
  return rest;
}

/** The strings of a request that may be written by the caller; undefined if it is not JSON. */
function stringsOf(request: string): string[] | undefined {
  const texts: string[] = [];
  const open: unknown[] = [];
  try {
    open.push(JSON.parse(request));
  } catch {
    return undefined;
  }
  for (let value = open.pop(); value !== undefined; value = open.pop()) {
    if (typeof value === 'string') {
      if (!plainName.test(value) && !value.startsWith('data:')) texts.push(value);
    } else if (typeof value === 'object' && value !== null) {
      for (const [name, each] of Object.entries(value)) {
        // A file's name is its caller's, however plain.
        if (name === 'filename' && typeof each === 'string' && !singleWord.test(each)) texts.push(each);
        // The sandbox's instructions are not a prompt.
        else if (name !== 'sandbox' && each !== null) open.push(each);
      }
    }
  }
  return texts;
}
