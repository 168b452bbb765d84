import type { TextBlock, UserBlock } from '../../../shared/capabilities/message.ts';
import type { InputMedia } from '../../pipeline/input-media.ts';

/** What translating a request for a message finds out about it beside the chat it becomes. */
export interface MessageNotes {
  /** Names of what no chat has a place for. */
  readonly ignored: Set<string>;
  /** Names of what is passed on although OpenAI's document does not have it. */
  readonly hints: Set<string>;
  /** It holds data of images or documents. */
  hasMedia: boolean;
  /** The images and documents themselves. */
  readonly media: InputMedia;
}

/** A part of a chat message. */
export type ChatPart = TextPart | ImagePart | FilePart;

interface Cached {
  readonly cache_control?: unknown;
}
export interface TextPart extends Cached {
  readonly type: 'text';
  readonly text: string;
}
interface ImagePart extends Cached {
  readonly type: 'image_url';
  readonly image_url: { readonly url: string };
}
interface FilePart extends Cached {
  readonly type: 'file';
  readonly file: { readonly filename: string; readonly file_data: string };
}

/** A block that a user's turn or a tool's result may hold, as it is: all but the results themselves. */
export type ShownBlock =
  | Exclude<UserBlock, { type: 'tool_result' }>
  | { readonly type: 'tool_reference'; readonly tool_name: string };

/** The cache mark of a block, to be put on what it becomes. */
export function cacheMark(block: Cached, notes: MessageNotes): Cached {
  if (block.cache_control == null) return {};
  notes.hints.add('cache_control');
  return { cache_control: block.cache_control };
}

/** A text as a part. */
export function textPart(block: TextBlock, notes: MessageNotes): TextPart {
  return { type: 'text', text: block.text, ...cacheMark(block, notes) };
}

/** Parts as the content of a chat message: a text by itself is a string, which every vendor knows. */
export function contentOf<Part extends ChatPart>(parts: readonly Part[]): string | readonly Part[] {
  const [only, another] = parts;
  if (only === undefined) return '';
  return only.type === 'text' && another === undefined && only.cache_control === undefined ? only.text : parts;
}

/**
 * The parts that a block becomes. A document of text is text under its title and context, one in PDF a file; a search
 * result is text under its title and source.
 */
export function toParts(block: ShownBlock, notes: MessageNotes): ChatPart[] {
  switch (block.type) {
    case 'text':
      return [textPart(block, notes)];
    case 'image':
      return [imagePart(block, notes)];
    case 'document':
      return documentParts(block, notes);
    case 'search_result': {
      noteCitations(block, notes);
      const text = [block.title, block.source, ...block.content.map((part) => part.text)].join('\n');
      return [{ type: 'text', text, ...cacheMark(block, notes) }];
    }
    // What a search for tools answers with. All tools are in the request, so the model knows it by its name.
    case 'tool_reference':
      return [{ type: 'text', text: `The tool ${block.tool_name} is available.` }];
  }
}

function imagePart(block: Extract<ShownBlock, { type: 'image' }>, notes: MessageNotes): ImagePart {
  const { source } = block;
  if (source.type === 'base64') notes.hasMedia = true;
  const url = source.type === 'url' ? source.url : `data:${source.media_type};base64,${source.data}`;
  notes.media.addImage(url);
  return { type: 'image_url', image_url: { url }, ...cacheMark(block, notes) };
}

function documentParts(block: Extract<ShownBlock, { type: 'document' }>, notes: MessageNotes): ChatPart[] {
  const { source, title, context } = block;
  noteCitations(block, notes);
  const mark = cacheMark(block, notes);
  const heading = [title, context].filter((line) => line != null && line !== '').join('\n');
  if (source.type === 'base64') {
    notes.hasMedia = true;
    const filename = title ? `${title.replace(/\.pdf$/i, '')}.pdf` : 'document.pdf';
    const file = { filename, file_data: `data:application/pdf;base64,${source.data}` };
    notes.media.addDocument(file.file_data);
    return [...(context ? [asText(context)] : []), { type: 'file', file, ...mark }];
  }
  const content = source.type === 'text' ? source.data : source.content;
  if (typeof content === 'string') {
    return [{ ...asText(heading === '' ? content : `${heading}\n\n${content}`), ...mark }];
  }
  const parts = [...(heading === '' ? [] : [asText(heading)]), ...content.flatMap((part) => toParts(part, notes))];
  return parts.map((part, at) => (at === parts.length - 1 ? { ...part, ...mark } : part));
}

function asText(text: string): TextPart {
  return { type: 'text', text };
}

function noteCitations(
  { citations }: { citations?: { enabled?: unknown } | null | undefined },
  notes: MessageNotes,
): void {
  if (citations?.enabled === true) notes.ignored.add('citations');
}
