import type { UnsupportedParameters } from '../../shared/accounts/api-keys.ts';
import type { RoutedModel } from '../../shared/catalogue/catalogue.ts';
import type { Model } from '../../shared/catalogue/models.ts';
import { ApiError } from '../../shared/errors.ts';
import { askedSearchContext } from '../../shared/money/cost.ts';
import { isStandardTier, tierName } from '../../shared/money/service-tier.ts';
import { chatFieldSupport, modelFieldSupport, supportOf } from '../../shared/vendors/field-support.ts';
import { checkGivenFields } from './check-given-fields.ts';
import type { Extent } from './parsed-request.ts';
import { invalidParameter } from './request-fields.ts';

/**
 * The images and documents of a request, counted while it is parsed. Only fields in which the endpoint has images or
 * documents count, so that nothing else in the request passes for one.
 */
export class InputMedia {
  imageInputs = 0;
  mediaBytes = 0;
  documents = 0;

  /** @param url a link, a data URL, or nothing if the image is referenced by id */
  addImage(url: unknown): void {
    this.imageInputs++;
    // A character of it is at least one byte of the request.
    if (typeof url === 'string' && imageData.test(url)) this.mediaBytes += url.length;
  }

  /** @param data a data URL or base64, or nothing if the document is referenced by a link or an id */
  addDocument(data: unknown): void {
    // A text has at most as many tokens as bytes; other documents (a PDF is compressed) cannot be estimated.
    if (typeof data !== 'string' || !textData.test(data)) this.documents++;
  }

  /** The same as facts for the estimate of a hold. */
  get extent(): MediaExtent {
    const { imageInputs, mediaBytes, documents } = this;
    return imageInputs + documents === 0 ? undefined : { imageInputs, mediaBytes, documents };
  }
}

/** The facts of images and documents; undefined if there are none. */
export type MediaExtent = Pick<Extent, 'imageInputs' | 'mediaBytes' | 'documents'> | undefined;

/** Adds the facts of two parts of a request. */
export function joinedMedia(one: MediaExtent, other: MediaExtent): MediaExtent {
  if (one === undefined || other === undefined) return one ?? other;
  return {
    imageInputs: (one.imageInputs ?? 0) + (other.imageInputs ?? 0),
    mediaBytes: (one.mediaBytes ?? 0) + (other.mediaBytes ?? 0),
    documents: (one.documents ?? 0) + (other.documents ?? 0),
  };
}

const imageData = /^data:image\/[\w.+-]{1,64};base64,/i;
const textData = /^data:text\//i;

/**
 * The extent of a request for text.
 * @param outputTokens the caller's limit for each answer
 * @param choices number of answers
 */
export function extentOf(outputTokens: number | null | undefined, choices?: number | null): Extent {
  return { outputTokens: outputTokens ?? undefined, choices: choices ?? undefined };
}

/** The limit of a chat's reasoning apart from its answer's, at vendors that have one. What is no amount they may pass over. */
export function reasoningExtent(chat: object): Pick<Extent, 'reasoningTokens'> {
  const { thinking_budget: limit } = chat as { readonly thinking_budget?: unknown };
  return Number.isSafeInteger(limit) && (limit as number) > 0 ? { reasoningTokens: limit as number } : {};
}

/**
 * Facts of a text request that its prices depend on; empty for most.
 * @param requests number of requests that it counts as
 */
export function feeExtent(request: object, requests = 1): Pick<Extent, 'fee'> {
  const { web_search_options: options, service_tier: asked } = request as Readonly<Record<string, unknown>>;
  const searchContext = options === undefined ? undefined : askedSearchContext(options);
  const tier = asked == null || isStandardTier(asked) ? undefined : tierName(asked);
  if (searchContext === undefined && tier === undefined && requests === 1) return {};
  return {
    fee: { ...(searchContext && { searchContext }), ...(requests !== 1 && { requests }), ...(tier && { tier }) },
  };
}

/** Facts of an image request for prices per image. Values that no price can name are omitted. */
export function imageFeeExtent({ size, quality }: { size?: unknown; quality?: unknown }): Pick<Extent, 'fee'> {
  const [imageSize, imageQuality] = [nameOf(size), nameOf(quality)];
  if (imageSize === undefined && imageQuality === undefined) return {};
  return { fee: { ...(imageSize && { imageSize }), ...(imageQuality && { imageQuality }) } };
}

function nameOf(value: unknown): string | undefined {
  return typeof value === 'string' && /^[\w-]{1,31}$/.test(value) ? value : undefined;
}

/** Properties of a chat request that a model's row limits. */
export interface ModelLimits {
  /** Path of the first image, as the caller names it (`messages[2].content[0]`), if there is one. */
  readonly image?: string;
  /** The requested maximum of tokens, and the caller's name for it, if given. */
  readonly most?: { readonly param: string; readonly tokens: number } | undefined;
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

/**
 * No tokenizer's tokens are that long on average (runs of one character count once): a prompt with more characters per token
 * of the window cannot fit. Closer cases are left to the vendor.
 */
const charactersPerToken = 16;

type Bounded = Pick<Model, 'id' | 'input' | 'contextWindow' | 'maxOutputTokens'>;

/**
 * Checks a chat against its model's row: images for a model without image input, more output tokens than the model's
 * maximum, a prompt that cannot fit. Without facts in the row the vendor decides.
 * @throws ApiError 400 that names the field at fault.
 */
export function checkModelLimits(limits: ModelLimits, model: Bounded): void {
  const { image, most, param, characters } = limits;
  if (image !== undefined && model.input?.includes('image') === false) {
    throw invalidParameter(image, `Invalid '${image}': the model \`${model.id}\` does not take images.`);
  }
  const maxTokens = model.maxOutputTokens;
  if (most !== undefined && maxTokens !== undefined && most.tokens > maxTokens) {
    throw invalidParameter(
      most.param,
      `Invalid '${most.param}': expected a value <= ${maxTokens} with \`${model.id}\`, but got ${most.tokens} instead.`,
    );
  }
  const window = model.contextWindow;
  if (window !== undefined && characters > window * charactersPerToken) {
    throw new ApiError(
      'context_length_exceeded',
      `This model's maximum context length is ${window} tokens. However, your prompt is longer than that. Please reduce the length of the prompt.`,
      { param },
    );
  }
}

/** The chat fields of a request. */
export interface ChatFieldRequirements {
  /** Names of fields in a chat: see `givenChatFields`. */
  readonly chatFields: readonly string[];
  /** The caller's names, if they differ. */
  readonly chatFieldNames?: Readonly<Record<string, string>>;
}

/**
 * Checks the fields of a chat against the vendor of a route.
 * @returns the ignored fields by the caller's names: hints that the vendor's worker omits
 * @throws ApiError 400 that names a field whose absence would change the answer, unless those are to be dropped, too.
 */
export function checkChatFields(
  { chatFields, chatFieldNames = {} }: ChatFieldRequirements,
  { id, vendorRow, route }: Pick<RoutedModel, 'id' | 'vendorRow' | 'route'>,
  unsupported: UnsupportedParameters = 'refuse',
): readonly string[] {
  const support = unsupported === 'drop' ? modelFieldSupport(vendorRow, route.model) : chatFieldSupport(vendorRow);
  if (support === undefined) return [];
  const fields = chatFields.map((field) => {
    const type = /^response_format\.(.*)$/s.exec(field)?.[1];
    const chatName = type === undefined ? field : 'response_format';
    const name = Object.hasOwn(chatFieldNames, chatName) ? String(chatFieldNames[chatName]) : chatName;
    return { name, type, support: supportOf(support, field) };
  });
  return checkGivenFields(fields, id, unsupported);
}
