import { readImageHeader } from '../image-header.ts';
import { textStart } from '../tokens.ts';
import type { ChatMessage, ContentPart } from './chat-message.ts';

/** Image headers lie in the first bytes; photographs may have previews and colour profiles before the size. */
const HEADER_CHARACTERS = 1_048_576;

/** One sentence per image, sound or file of a message, with what the sandbox can detect about it. */
export function describeAttachments(message: ChatMessage | undefined): string[] {
  if (message === undefined || typeof message.content === 'string') return [];
  return message.content.flatMap((part) => describePart(part) ?? []);
}

function describePart(part: ContentPart): string | undefined {
  if (part.type === 'image_url') return describeImage(part.image_url.url);
  if (part.type === 'input_audio') {
    const bytes = Buffer.byteLength(part.input_audio.data, 'base64');
    return `You sent audio (${textStart(part.input_audio.format, 20)}, ${bytes} bytes), which the sandbox does not listen to.`;
  }
  if (part.type !== 'file') return undefined;
  const name = part.file.filename ?? part.file.file_id;
  return `You sent the file ${typeof name === 'string' ? `"${textStart(name, 100)}"` : 'without a name'}, which the sandbox does not open.`;
}

function describeImage(url: string): string {
  const data = /^data:([^;,]*)[^,]{0,100};base64,/i.exec(url);
  if (data === null) return `You showed me the image at ${textStart(url, 200)}, which the sandbox does not fetch.`;
  const start = data[0].length;
  const header = readImageHeader(Buffer.from(url.slice(start, start + HEADER_CHARACTERS), 'base64'));
  if (header === undefined) return 'You showed me an image whose format the sandbox cannot read.';
  const { format, mediaType, width, height } = header;
  return `You showed me a ${format} image of ${width}×${height} pixels (${mediaType}, ${width}x${height}).`;
}
