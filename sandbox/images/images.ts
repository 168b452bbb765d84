import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import type { Exchange } from '../exchange.ts';
import { type FormRules, readForm } from '../form.ts';
import type { ImageHeader } from '../image-header.ts';
import { answerMedia, type Delivery, type Part, sendParts, sendWhole } from '../media-answer.ts';
import { drawImage, type Picture, type Source } from './draw-image.ts';
import {
  hasStandardSize,
  type ImageRequest,
  readFormEdit,
  readGeneration,
  readJsonEdit,
  readVariation,
} from './image-request.ts';
import { addUsage, imageUsage } from './image-usage.ts';
import { ImageInspector, type SourceImage } from './source-image.ts';

const formRules: FormRules<ImageHeader | undefined> = {
  maximumFileBytes: 50 * 1024 * 1024,
  maximumFiles: 17,
  inspect: () => new ImageInspector(),
};

/** `POST /v1/images/generations` */
export function generateImages(exchange: Exchange): void {
  answer(exchange, readGeneration(exchange.body, exchange.request.headers));
}

/** `POST /v1/images/edits` with a JSON body */
export function editImages(exchange: Exchange): void {
  answer(exchange, readJsonEdit(exchange.body, exchange.request.headers));
}

/** `POST /v1/images/edits` with a form */
export async function editImagesOfForm(exchange: Exchange): Promise<void> {
  const form = await readForm(exchange.request, formRules);
  answer(exchange, readFormEdit(form, exchange.request.headers));
}

/** `POST /v1/images/variations` */
export async function varyImage(exchange: Exchange): Promise<void> {
  const form = await readForm(exchange.request, formRules);
  answer(exchange, readVariation(form, exchange.request.headers));
}

function answer(exchange: Exchange, request: ImageRequest): void {
  answerMedia(exchange, request, (delivery) => {
    if (request.stream) return sendParts(delivery, 'text/event-stream; charset=utf-8', imageEvents(request));
    return sendImages(delivery, exchange, request);
  });
}

async function sendImages(delivery: Delivery, exchange: Exchange, request: ImageRequest): Promise<void> {
  const data: object[] = [];
  for (let index = 0; index < request.images; index += 1) {
    // Lets other calls run between two images.
    if (index > 0) await yieldToEventLoop();
    const file = drawImage(pictureOf(request, index), request.format);
    data.push(request.asUrl ? { url: addressOf(exchange, request, file) } : { b64_json: file.toString('base64') });
  }
  const body = {
    created: now(),
    background: request.background,
    data,
    output_format: request.format,
    quality: request.quality,
    ...(hasStandardSize(request) && { size: sizeOf(request) }),
    usage: addUsage(imageUsage(request, 0), request.images),
  };
  await sendWhole(delivery, 'application/json', JSON.stringify(body), request.images);
}

function addressOf({ request, state }: Exchange, { format }: ImageRequest, file: Buffer): string {
  return `http://${request.headers.host}/v1/generated-images/${state.images.add(file, format)}`;
}

/** One event per partial image and one per whole image, image after image. */
async function* imageEvents(request: ImageRequest): AsyncGenerator<Part> {
  const prefix = request.task === 'edit' ? 'image_edit' : 'image_generation';
  for (let index = 0; index < request.images; index += 1) {
    const picture = pictureOf(request, index);
    for (let partial = 0; partial < request.partialImages; partial += 1) {
      await yieldToEventLoop();
      const file = drawImage(picture, request.format, partial);
      yield eventOf(`${prefix}.partial_image`, request, file, { partial_image_index: partial });
    }
    await yieldToEventLoop();
    const usage = imageUsage(request, request.partialImages);
    yield eventOf(`${prefix}.completed`, request, drawImage(picture, request.format), { usage });
  }
}

function eventOf(type: string, request: ImageRequest, file: Buffer, more: object): Part {
  const event = {
    type,
    b64_json: file.toString('base64'),
    created_at: now(),
    size: sizeOf(request),
    quality: request.quality,
    background: request.background,
    output_format: request.format,
    ...more,
  };
  return { data: `event: ${type}\ndata: ${JSON.stringify(event)}\n\n`, counts: true };
}

const titles = { generation: 'SANDBOX IMAGE', edit: 'SANDBOX EDIT', variation: 'SANDBOX VARIATION' };

function pictureOf(request: ImageRequest, index: number): Picture {
  const { task, prompt, model, quality, images, wishes, sources, mask, background, width, height } = request;
  const isTransparent = background === 'transparent';
  return {
    width,
    height,
    title: titles[task],
    text: prompt,
    sources: [
      ...sources.map((source) => describe('', source)),
      ...(mask === undefined ? [] : [describe('mask ', mask)]),
      ...(mask === undefined && task === 'edit' ? [{ label: 'no mask', sha256: '0' }] : []),
    ],
    footer: [`${model.id} ${sizeOf(request)} ${quality}`, `image ${index + 1} of ${images}`, ...wishes].join(', '),
    seed: `${prompt} ${sources.map(({ sha256 }) => sha256).join(' ')} ${index}`,
    transparent: isTransparent,
  };
}

function describe(kind: string, { header, bytes, sha256 }: SourceImage): Source {
  const { format, width, height } = header;
  return { label: `${kind}${format} ${width}x${height} ${bytes}B ${sha256.slice(0, 8)}`, sha256 };
}

function sizeOf({ width, height }: ImageRequest): string {
  return `${width}x${height}`;
}

function now(): number {
  return Math.floor(Date.now() / 1000);
}
