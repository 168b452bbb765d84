import type { TextBlock, UserBlock } from '../../../shared/capabilities/message.ts';
import type { InputMedia } from '../../pipeline/request-extent.ts';

/** Facts about a message request, collected while translating it to a chat. */
export interface MessageNotes {
  /** Names of fields that a chat does not support. */
  readonly ignored: Set<string>;
  /** Names of fields that are passed on although OpenAI's API lacks them. */
  readonly hints: Set<string>;
  /** Whether it contains data of images or documents. */
  hasMedia: boolean;
  /** The images and documents themselves. */
  readonly media: InputMedia;
  /** Whether it contains a link to a document. */
  linksDocument: boolean;
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

/** A block of a user's turn or a tool's result, except the results themselves. */
export type ShownBlock =
  | Exclude<UserBlock, { type: 'tool_result' }>
  | { readonly type: 'tool_reference'; readonly tool_name: string };

/** The cache mark of a block, or of a tool, for what is made from it. It is noted even where nothing has room for it. */
export function cacheMark(marked: object, notes: MessageNotes): Cached {
  const { cache_control: mark } = marked as Cached;
  if (mark == null) return {};
  notes.hints.add('cache_control');
  return { cache_control: mark };
}

/** Converts a text block to a part. */
export function textPart(block: TextBlock, notes: MessageNotes): TextPart {
  return { type: 'text', text: block.text, ...cacheMark(block, notes) };
}

/** Converts parts to the content of a chat message: a single text is a string, which every vendor supports. */
export function contentOf<Part extends ChatPart>(parts: readonly Part[]): string | readonly Part[] {
  const [only, another] = parts;
  if (only === undefined) return '';
  return only.type === 'text' && another === undefined && only.cache_control === undefined ? only.text : parts;
}

/**
 * Converts a block to parts. A document of text becomes text under its title and context, one in PDF a file, or a link to it; a
 * search result becomes text under its title and source.
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
      for (const part of block.content) cacheMark(part, notes);
      const text = [block.title, block.source, ...block.content.map((part) => part.text)].join('\n');
      return [{ type: 'text', text, ...cacheMark(block, notes) }];
    }
    // The result of a search for tools. All tools are in the request, so the name suffices.
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
  if (source.type === 'base64' || source.type === 'url') {
    if (source.type === 'base64') notes.hasMedia = true;
    else notes.linksDocument = true;
    const filename = title ? `${title.replace(/\.pdf$/i, '')}.pdf` : 'document.pdf';
    const data = source.type === 'url' ? source.url : `data:application/pdf;base64,${source.data}`;
    const file = { filename, file_data: data };
    notes.media.addDocument(data);
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
