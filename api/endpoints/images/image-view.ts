import { type ImageResult, parseImageEnd, wireBodyOf } from '../../../shared/capabilities/image.ts';
import type { Frame } from '../../../shared/jobs/frames.ts';
import { sseEvent } from '../../replies/sse-event.ts';
import type { View, ViewedJob } from '../../replies/view.ts';

/** What stands before the point in the types of the events: OpenAI's, and one of ours for variations. */
type EventFamily = 'image_generation' | 'image_edit' | 'image_variation';

/**
 * How image jobs are shown: held as OpenAI's `ImagesResponse`, streamed as its `….partial_image` and `….completed` events.
 * A completed event holds base64, as OpenAI's do, and a `url` beside it where links were asked for; a held answer that is
 * watched as a stream holds what the answer holds.
 */
export function imageView(family: EventFamily): View {
  return {
    stream: (job) => (frame) => imageEvents(family, job, frame),
    held: imagesResponse,
    heldFromEnd: true,
    // Partial images are for those who wait: whoever comes later gets the whole ones.
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

/** An image as callers see it: the stored file became a link. */
function linked({ file, type: _, bytes: __, ...image }: ImageResult, link: ViewedJob['link']): Record<string, unknown> {
  return file === undefined ? image : { url: link(file), ...image };
}

/** OpenAI ends its image streams with the last completed event: there is no `[DONE]`. */
function imageEvents(family: EventFamily, { link }: ViewedJob, { type, text }: Frame): string[] {
  if (type === 'delta') return [event(`${family}.partial_image`, text)];
  if (type !== 'end') return [];
  const { data, created, usage, ...rest } = parseImageEnd(text);
  return data.map(({ usage: ownUsage, ...image }, index) => {
    // Where the vendor did not count per image, the counts of all of them come once, with the last.
    const counted = ownUsage ?? (index === data.length - 1 ? usage : undefined);
    const fields = { ...linked(image, link), created_at: created, ...rest, usage: counted };
    return event(`${family}.completed`, JSON.stringify(fields));
  });
}

/** An event whose `type` is put before its other fields without parsing them. */
function event(type: string, fields: string): string {
  return sseEvent(type, `{"type":"${type}",${fields.slice(1)}`);
}
