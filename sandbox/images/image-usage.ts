import { splitTokens } from '../tokens.ts';
import type { ImageRequest } from './image-request.ts';
import type { SourceImage } from './source-image.ts';

/** Output tokens of OpenAI's gpt-image-1 for 1024 × 1024 pixels, and for a partial image. */
const outputTokens = { low: 272, medium: 1056, high: 4160 };
const PARTIAL_TOKENS = 100;
const TILE_PIXELS = 512;
const TILE_TOKENS = 129;
const IMAGE_TOKENS = 65;
const MAXIMUM_TILES = 16;

/** `usage` as returned by OpenAI's gpt-image models. */
export interface ImageUsage {
  input_tokens: number;
  input_tokens_details: { text_tokens: number; image_tokens: number };
  output_tokens: number;
  output_tokens_details: { text_tokens: number; image_tokens: number };
  total_tokens: number;
}

/** The usage of one image of the request. */
export function imageUsage(request: ImageRequest, partialImages: number): ImageUsage {
  const { prompt, sources, mask, width, height, quality } = request;
  const given = mask === undefined ? sources : [...sources, mask];
  const text = splitTokens(prompt).length;
  const image = given.reduce((sum, source) => sum + inputTokens(source), 0);
  const output = Math.round((outputTokens[quality] * width * height) / 1024 ** 2) + PARTIAL_TOKENS * partialImages;
  return toUsage(text, image, output);
}

/** The usage of this many images from one prompt: the input counts once. */
export function addUsage(usage: ImageUsage, images: number): ImageUsage {
  const { text_tokens, image_tokens } = usage.input_tokens_details;
  return toUsage(text_tokens, image_tokens, usage.output_tokens * images);
}

function toUsage(text: number, image: number, output: number): ImageUsage {
  return {
    input_tokens: text + image,
    input_tokens_details: { text_tokens: text, image_tokens: image },
    output_tokens: output,
    output_tokens_details: { text_tokens: 0, image_tokens: output },
    total_tokens: text + image + output,
  };
}

function inputTokens({ header }: SourceImage): number {
  const tiles = Math.ceil(header.width / TILE_PIXELS) * Math.ceil(header.height / TILE_PIXELS);
  return IMAGE_TOKENS + TILE_TOKENS * Math.min(MAXIMUM_TILES, tiles);
}
