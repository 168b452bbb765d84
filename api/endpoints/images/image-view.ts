import { type ImageResult, parseImageEnd, wireBodyOf, wireStartOf } from '../../../shared/capabilities/image.ts';
import type { Frame } from '../../../shared/jobs/append.ts';
import { sseEvent } from '../../replies/sse-event.ts';
import type { View, ViewedJob } from '../../replies/view.ts';

/** Prefix of event types: OpenAI's, and our own for variations. */
type EventFamily = 'image_generation' | 'image_edit' | 'image_variation';

/**
 * The view of image jobs: held as OpenAI's `ImagesResponse`, streamed as its `….partial_image` and `….completed` events. A
 * completed event has base64, as at OpenAI, and also a `url` if links were requested; a held answer watched as a stream has
 * what the answer has.
 */
export function imageView(family: EventFamily): View {
  return {
    stream: (job) => (frame) => imageEvents(family, job, frame),
    held: imagesResponse,
    heldStart: (_job, end) => wireStartOf(end),
    heldFromEnd: true,
    // Partial images are only for live readers; later ones get the whole images.
    final: (frames) => [frames.at(-1) as Frame],
  };
}

function imagesResponse({ link }: ViewedJob, frames: readonly Frame[]): string {
  const { text } = frames.at(-1) as Frame;
  const body = wireBodyOf(text);
  if (body !== undefined) return body;
  const { created, data, ...rest } = parseImageEnd(text);
  return JSON.stringify({ created, data: data.map(({ usage: _, ...image }) => linked(image, link)), ...rest });
}

/** An image as shown to callers: the stored file becomes a link. */
function linked({ file, type: _, bytes: __, ...image }: ImageResult, link: ViewedJob['link']): Record<string, unknown> {
  return file === undefined ? image : { url: link(file), ...image };
}

/** OpenAI's image streams end with the last completed event: there is no `[DONE]`. */
function imageEvents(family: EventFamily, { link }: ViewedJob, { type, text }: Frame): string[] {
  if (type === 'delta') return [event(`${family}.partial_image`, text)];
  if (type !== 'end') return [];
  const { data, created, usage, ...rest } = parseImageEnd(text);
  return data.map(({ usage: ownUsage, ...image }, index) => {
    // Without counts per image, the total is sent once, with the last image.
    const counted = ownUsage ?? (index === data.length - 1 ? usage : undefined);
    const fields = { ...linked(image, link), created_at: created, ...rest, usage: counted };
    return event(`${family}.completed`, JSON.stringify(fields));
  });
}

/** Makes an event by prepending `type` to the other fields without parsing them. */
function event(type: string, fields: string): string {
  return sseEvent(type, `{"type":"${type}",${fields.slice(1)}`);
}
