import type { ChatMessage } from '../../../shared/capabilities/chat-message.ts';
import { isLink, typeOfBase64 } from '../support/inline-media.ts';
import type { JsonObject } from '../support/json-object.ts';
import { unsupportedField } from '../support/unsupported-field.ts';

/** A content block of one of Anthropic's requests. */
export type AnthropicBlock = JsonObject & { readonly type: string };

type ListOf<Content> = Content extends readonly (infer Part)[] ? Part : never;
/** A part of any chat message. */
export type ChatContentPart = ListOf<Extract<ChatMessage, { content?: unknown }>['content']>;
type PartOf<Type extends string> = Extract<ChatContentPart, { type: Type }>;

/**
 * Converts the content of a chat message to blocks. Blank text is left out: Anthropic refuses it.
 * @param path The content's path in the request, for errors: `messages[0].content`.
 * @throws ApiError 400 for content that Anthropic's models do not support.
 */
export function toAnthropicBlocks(
  content: string | readonly ChatContentPart[] | null | undefined,
  path: string,
): AnthropicBlock[] {
  return toAllBlocks(content, path).filter(isSaid);
}

/** The same with blank text. */
export function toAllBlocks(
  content: string | readonly ChatContentPart[] | null | undefined,
  path: string,
): AnthropicBlock[] {
  if (content == null) return [];
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  return content.map((part, index) => ({ ...toBlock(part, `${path}[${index}]`), ...cacheMark(part) }));
}

/** Whether it is no blank text. */
export function isSaid({ type, text }: AnthropicBlock): boolean {
  return type !== 'text' || String(text).trim() !== '';
}

/** The cache mark of a part, a tool or a tool call. */
export function cacheMark(marked: JsonObject): JsonObject {
  return marked.cache_control == null ? {} : { cache_control: marked.cache_control };
}

function toBlock(part: ChatContentPart, path: string): AnthropicBlock {
  switch (part.type) {
    case 'text':
      return { type: 'text', text: part.text };
    case 'refusal':
      return { type: 'text', text: part.refusal };
    case 'image_url':
      return { type: 'image', source: imageSource(part.image_url.url, `${path}.image_url.url`) };
    case 'file':
      return documentBlock(part.file, `${path}.file`);
    case 'input_audio':
      throw unsupportedField(path, 'the model does not take audio');
  }
}

/** Anthropic fetches images by itself. Those of another type than their URL says it refuses. */
function imageSource(url: string, path: string): JsonObject {
  const inline = readDataUrl(url);
  if (inline !== undefined) {
    const named = inline.type === 'image/jpg' ? 'image/jpeg' : inline.type;
    return { type: 'base64', media_type: typeOfBase64(inline.data) ?? named, data: inline.data };
  }
  if (!isLink(url)) throw unsupportedField(path, 'use an https URL or a data URL in base64');
  return { type: 'url', url };
}

/**
 * A PDF, a link to one, or text, as a document (https://docs.anthropic.com/en/docs/build-with-claude/pdf-support). Its title is
 * the file's name without the extension, unless that is generic.
 */
function documentBlock(file: PartOf<'file'>['file'], path: string): AnthropicBlock {
  if (file.file_data === undefined) {
    throw unsupportedField(
      file.file_id === undefined ? path : `${path}.file_id`,
      "send the file itself as 'file_data'",
    );
  }
  const inline = readDataUrl(file.file_data);
  const title = (file.filename ?? '').replace(/\.pdf$/i, '');
  const named = title === '' || title === 'document' ? {} : { title };
  if (isLink(file.file_data)) return { type: 'document', source: { type: 'url', url: file.file_data }, ...named };
  if (inline?.type === 'application/pdf') {
    return { type: 'document', source: { type: 'base64', media_type: inline.type, data: inline.data }, ...named };
  }
  if (inline?.type.startsWith('text/')) {
    const data = Buffer.from(inline.data, 'base64').toString();
    return { type: 'document', source: { type: 'text', media_type: 'text/plain', data }, ...named };
  }
  throw unsupportedField(`${path}.file_data`, 'use a link to a PDF, or a data URL in base64 of a PDF or of text');
}

function readDataUrl(url: string): { readonly type: string; readonly data: string } | undefined {
  const [header, type] = /^data:([^;,]+)(?:;[^;,]+)*;base64,/i.exec(url) ?? [];
  return header === undefined || type === undefined
    ? undefined
    : { type: type.toLowerCase(), data: url.slice(header.length) };
}
