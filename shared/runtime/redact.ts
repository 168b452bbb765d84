/**
 * Patterns of keys: starred out by a vendor, with a typical prefix, or as long and mixed as keys are. Plain words, model ids
 * and dates do not match.
 */
const keyPatterns = [
  /[\w.-]*\*{3,}[\w.*-]*/g,
  /\b(?:sk|pk|rk|ak|gsk|xai|pplx|nvapi|hf|r8|key|fw|tgp|csk|dapi|AIza|AKIA|ASIA|eyJ)[-_]?[\w-]{12,}(?:\.[\w-]+)*/g,
  /(?<=\b(?:Bearer|Basic|Token)\s+)[\w.~+/=-]{8,}/gi,
  /\b(?=[\w-]*[a-z])(?=[\w-]*[A-Z])(?=[\w-]*\d)[\w-]{24,}\b/g,
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

/**
 * Removes quotes of the request from a vendor's message: prompts, texts of tools and anything else written by the caller.
 * @param request JSON text
 * @returns undefined if the request is too long to check, or not JSON
 */
export function withoutWordsOf(message: string, request: string): string | undefined {
  // Even parsing it would block other requests.
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
        // The sandbox's instructions are not a prompt.
        if (name !== 'sandbox' && each !== null) open.push(each);
      }
    }
  }
  return texts;
}
