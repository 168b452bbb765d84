/** What of a request for a chat a model's row bounds. */
export interface ModelLimits {
  /** Where the first image is, as the caller names it (`messages[2].content[0]`); left out: there is none. */
  readonly image?: string;
  /** The most tokens that are asked for, and what the caller calls that; left out: not said. */
  readonly most?: { readonly param: string; readonly tokens: number };
  /** Where the prompt is. */
  readonly param: string;
  /** Characters of the prompt's text, a run of the same one counted once: such a run may be a single token. */
  readonly characters: number;
}

/** No window is so small that fewer characters could be too many: only longer prompts are looked at one by one. */
const surelyFits = 32_768;

const images = new Set(['image_url', 'input_image', 'image']);

interface Part {
  readonly type?: unknown;
  readonly text?: unknown;
  readonly content?: unknown;
}

interface Turn {
  readonly content?: unknown;
  /** What a tool has answered, in the Responses API. */
  readonly output?: unknown;
}

/**
 * Reads the limits of a prompt in any of the three APIs' shapes: turns whose content is text, or parts that may hold parts.
 * @param param what the caller calls the prompt
 * @param most the fields by which the caller may have limited the answer, the one that counts first
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

/** The first image of a prompt, and how long its texts are together. */
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
      // Parts of parts may be of types that nobody here knows: their vendor checks them.
      const { type, text, content: inner } = part ?? {};
      const at = own ?? `${path}[${index}]`;
      if (found.image === undefined && typeof type === 'string' && images.has(type)) found.image = at;
      read(text, at, at);
      // An image in a tool's result is named by the result: that is the part the caller wrote.
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

/** Characters that differ from the one before them. */
function changes(text: string): number {
  let count = 0;
  let before = -1;
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code !== before) count++;
    before = code;
  }
  return count;
}
