import { Readable } from 'node:stream';
import { ApiError } from '../../../shared/errors.ts';
import { typeOfImage } from './inline-media.ts';

/** Texts of any kind: pages, and errors in JSON or XML. */
const texts = /^text\/|^application\/(?:[\w.-]+\+)?(?:json|xml)$/;
const json = /json$/;

/** How pages, drawings and errors in JSON begin, as Latin-1. What begins with white space alone is text, too. */
const beginnings: readonly (readonly [type: string, beginning: RegExp])[] = [
  ['text/html', /^(\xef\xbb\xbf)?\s*(<|$)/],
  ['application/json', /^(\xef\xbb\xbf)?\s*[{[]/],
];

/** What was answered in place of a file is a page or a picture, which a later try gets again. JSON may say that the file is to come. */
export class NoFileError extends ApiError {
  constructor(message: string) {
    super('server_error', message);
  }
}

/**
 * Refuses a body that is no media: a proxy's page or an error under a status of success would pass for a file, and be charged.
 * @param type its Content-Type @param media what it should be @throws ApiError
 */
export function refuseText(type: string, media: string): void {
  const name = type.split(';')[0]?.trim().toLowerCase() ?? '';
  if (!texts.test(name)) return;
  const message = `The model's vendor answered with text in place of ${media}.`;
  throw json.test(name) ? new ApiError('server_error', message) : new NoFileError(message);
}

/** The type of a file that begins as a text does, whatever its server says of it; undefined for others. */
export function typeOfText(head: Buffer): string | undefined {
  const text = head.toString('latin1', 0, headBytes);
  return beginnings.find(([, beginning]) => beginning.test(text))?.[0];
}

/** Refuses a film that is none. @param type its Content-Type @param head its first bytes @throws ApiError */
export function refuseNoFilm(type: string, head: Buffer): void {
  refuseText(typeOfText(head) ?? type, 'a video');
  if (!/^image\//i.test(type) && typeOfImage(head) === undefined) return;
  throw new NoFileError("The model's vendor answered with a picture in place of a video.");
}

/** Bytes that tell a file of one kind from others. */
export const headBytes = 64;

/**
 * The first bytes of a file, or all of a shorter one, and the whole file, which is read to its end or destroyed.
 * @param chunks its content
 */
export async function withHead(
  file: Readable,
  chunks: AsyncIterator<Buffer> = file[Symbol.asyncIterator](),
): Promise<{ readonly head: Buffer; readonly whole: Readable }> {
  let head = Buffer.alloc(0);
  while (head.length < headBytes) {
    const { value, done } = await chunks.next();
    if (done) break;
    head = Buffer.concat([head, value]);
  }
  const whole = Readable.from(joined(head, chunks), { objectMode: false });
  // Covers unread content too: the generator has not started then, and ends nothing.
  whole.once('close', () => file.destroy());
  return { head, whole };
}

async function* joined(head: Buffer, rest: AsyncIterator<Buffer>): AsyncGenerator<Buffer> {
  yield head;
  yield* { [Symbol.asyncIterator]: () => rest };
}
