/**
 * What looks like a key: what a vendor has starred out, and what starts as keys do, or is as long and as mixed as they are.
 * Words, ids of models and dates are not.
 */
const keyPatterns = [
  /[\w.-]*\*{3,}[\w.*-]*/g,
  /\b(?:sk|pk|rk|ak|gsk|xai|pplx|nvapi|hf|r8|key|fw|tgp|csk|dapi|AIza|AKIA|ASIA|eyJ)[-_]?[\w-]{12,}(?:\.[\w-]+)*/g,
  /(?<=\b(?:Bearer|Basic|Token)\s+)[\w.~+/=-]{8,}/gi,
  /\b(?=[\w-]*[a-z])(?=[\w-]*[A-Z])(?=[\w-]*\d)[\w-]{24,}\b/g,
  /\b[0-9a-f]{32,}\b/gi,
];

/** The text without what looks like a key. */
export function withoutKeys(text: string): string {
  return keyPatterns.reduce((rest, pattern) => rest.replace(pattern, '[key]'), text);
}

/** Ids, names of fields, and short values are no one's words: without them a message would say nothing. */
const plainName = /^[\w.:/-]{0,40}$/;
const minCharacters = 4;
/** Runs of so many characters that a message shares with a request are the request's; shorter ones are anybody's. */
const minRun = 24;
/** Each run that is longer by so many is found. */
const stride = 8;
/** What is looked at of a request, in characters of its strings: more takes too long. */
const maxLooked = 1024 * 1024;

/**
 * A vendor's message without what it repeats of the request: prompts, texts of tools and whatever else the caller has written.
 * @param request JSON text
 * @returns undefined where the request is too long to tell, or is no JSON
 */
export function withoutWordsOf(message: string, request: string): string | undefined {
  // Parsing it alone would hold up everybody else.
  if (request.length > 2 * maxLooked) return undefined;
  const texts = stringsOf(request);
  if (texts === undefined) return undefined;
  let rest = message;
  const runs = new Set<string>();
  for (let at = 0; at + minRun <= message.length; at++) runs.add(message.slice(at, at + minRun));
  let looked = 0;
  for (const text of texts) {
    looked += text.length;
    if (looked > maxLooked) return undefined;
    rest = withoutText(rest, text, runs);
  }
  return rest;
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

/** The strings of a request that may be its caller's words; undefined where it is no JSON. */
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
        // What the sandbox is told to answer is no prompt.
        if (name !== 'sandbox' && each !== null) open.push(each);
      }
    }
  }
  return texts;
}
