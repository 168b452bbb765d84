/** Stands for the token while a template is made; no vendor sends it. */
const marker = 'the token goes here: 5f1c7c0e-7c55-4a0b-9a57-2f2c1a3a8f10';
const contentStart = /"delta":\s*\{[^{}]*?"content":\s*/;
/** A JSON string without escapes; one that has them takes the slow way. */
const plainString = /^"[ !#-[\]-\uffff]*"$/;

/**
 * The chunks of one stream as a rule differ in a single string, the token. A template is such a chunk around its token, and
 * the frame that it becomes. Filling a string into JSON in place of another string changes that value and nothing else,
 * so a chunk that fits needs no parsing, which was half of the cost of a token here.
 */
export class TokenTemplate {
  private readonly before: string;
  private readonly after: string;
  private readonly frameBefore: string;
  private readonly frameAfter: string;

  private constructor(before: string, after: string, frameBefore: string, frameAfter: string) {
    this.before = before;
    this.after = after;
    this.frameBefore = frameBefore;
    this.frameAfter = frameAfter;
  }

  /**
   * @param data The text of a chunk whose only choice adds this `content`.
   * @param toFrame Makes the frame of a parsed chunk, the slow way.
   * @returns undefined where the token's place is not certain.
   */
  static from(data: string, content: string, toFrame: (text: string) => string): TokenTemplate | undefined {
    const found = contentStart.exec(data);
    if (!found) return undefined;
    const start = found.index + found[0].length;
    const end = data.indexOf('"', start + 1) + 1;
    if (data.slice(start, end) !== JSON.stringify(content)) return undefined;
    const before = data.slice(0, start);
    const after = data.slice(end);
    const placed = JSON.parse(`${before}"${marker}"${after}`);
    if (placed.choices[0].delta.content !== marker) return undefined;
    const [frameBefore, frameAfter, ...more] = toFrame(`${before}"${marker}"${after}`).split(`"${marker}"`);
    if (frameBefore === undefined || frameAfter === undefined || more.length > 0) return undefined;
    return new TokenTemplate(before, after, frameBefore, frameAfter);
  }

  /** The frame of a chunk, or undefined where it does not fit. */
  frame(data: string): string | undefined {
    const { before, after } = this;
    if (data.length < before.length + after.length || !data.startsWith(before) || !data.endsWith(after))
      return undefined;
    const token = data.slice(before.length, data.length - after.length);
    return plainString.test(token) ? this.frameBefore + token + this.frameAfter : undefined;
  }
}
