/** Properties of a chat request that a model's row limits. */
export interface ModelLimits {
  /** Path of the first image, as the caller names it (`messages[2].content[0]`), if there is one. */
  readonly image?: string;
  /** The requested maximum of tokens, and the caller's name for it, if given. */
  readonly most?: { readonly param: string; readonly tokens: number };
  /** Path of the prompt. */
  readonly param: string;
  /** Characters of the prompt's text, a run of the same one counted once: such a run may be a single token. */
  readonly characters: number;
}

/** Shorter prompts fit any window; only longer ones are scanned for runs. */
const surelyFits = 32_768;

const images = new Set(['image_url', 'input_image', 'image']);

interface Part {
  readonly type?: unknown;
  readonly text?: unknown;
  readonly content?: unknown;
}

interface Turn {
  readonly content?: unknown;
  /** The result of a tool, in the Responses API. */
  readonly output?: unknown;
}

/**
 * Reads the limits of a prompt in the shape of any of the three APIs: turns with text, or with possibly nested parts.
 * @param param the caller's name of the prompt
 * @param most fields by which the caller may have limited the answer, by precedence
 */
export function readModelLimits(
  param: string,
  prompt: unknown,
  most: Readonly<Record<string, number | null | undefined>>,
): ModelLimits {
  const found = readPrompt(param, prompt, (text) => text.length);
  const characters = found.characters < surelyFits ? found.characters : readPrompt(param, prompt, changes).characters;
  const [name, tokens] = Object.entries(most).find(([, value]) => value != null) ?? [];
  const asked = name !== undefined && tokens != null && { most: { param: name, tokens } };
  return { ...found, characters, param, ...asked };
}

/** The first image of a prompt, and the total length of its texts. */
function readPrompt(
  param: string,
  prompt: unknown,
  lengthOf: (text: string) => number,
): { image?: string; characters: number } {
  const found: { image?: string; characters: number } = { characters: 0 };
  const read = (content: unknown, path: string, own: string | undefined): void => {
    if (typeof content === 'string') found.characters += lengthOf(content);
    if (!Array.isArray(content)) return;
    (content as (Part | null)[]).forEach((part, index) => {
      // Nested parts may have unknown types, which their vendor checks.
      const { type, text, content: inner } = part ?? {};
      const at = own ?? `${path}[${index}]`;
      if (found.image === undefined && typeof type === 'string' && images.has(type)) found.image = at;
      read(text, at, at);
      // An image in a tool's result is named by the result, the part that the caller wrote.
      read(inner, at, at);
    });
  };
  if (typeof prompt === 'string') read(prompt, param, undefined);
  else if (Array.isArray(prompt)) {
    (prompt as Turn[]).forEach(({ content, output }, index) => {
      read(content, `${param}[${index}].content`, undefined);
      read(output, `${param}[${index}].output`, undefined);
    });
  }
  return found;
}

/** Where parts of a text are read, four characters at a time. */
const part = Buffer.alloc(64 * 1024);
const words = new Uint32Array(part.buffer, part.byteOffset, part.length / 4);

/**
 * Number of characters that differ from the one before them, of each the last eight bits: it is never too high. Four are
 * compared at a time, which takes a third of the time: a prompt of 300 KB is 300,000 comparisons.
 */
function changes(text: string): number {
  let count = text === '' ? 0 : 1;
  let before = text.charCodeAt(0) & 0xff;
  for (let from = 0; from < text.length; from += part.length) {
    const length = part.write(from === 0 ? text : text.slice(from, from + part.length), 'latin1');
    // The last word is filled with its last character, which is then no change.
    part.fill(part[length - 1] as number, length, Math.ceil(length / 4) * 4);
    const end = Math.ceil(length / 4);
    for (let index = 0; index < end; index++) {
      const word = words[index] as number;
      count += differentBytes(word ^ ((word << 8) | before));
      before = word >>> 24;
    }
  }
  return count;
}

/** How many of a word's four bytes are not 0: the top bit of each is set if it is not, and these bits are added up. */
function differentBytes(word: number): number {
  const tops = (((word & 0x7f7f7f7f) + 0x7f7f7f7f) | word) & 0x80808080;
  return Math.imul(tops >>> 7, 0x01010101) >>> 24;
}
