import { createHash } from 'node:crypto';
import type { ChatMessage } from '../../../shared/capabilities/chat-message.ts';
import { stringifyExact } from '../../../shared/capabilities/exact-json.ts';
import { flatToolName } from '../../../shared/capabilities/flat-tool-name.ts';
import { failedPrefix } from '../../../shared/capabilities/thought-signature.ts';
import { addAll } from '../../../shared/runtime/collections.ts';
import {
  type BedrockModelFamily,
  hasCachePoints,
  hasCachePointsAnywhere,
  hasResultStatus,
} from '../../../shared/vendors/bedrock-models.ts';
import type { AnthropicBlock } from '../anthropic/content.ts';
import {
  type AnthropicTurn,
  followsThoughtlessCalls,
  type SaidInChat,
  toAnthropicConversation,
} from '../anthropic/turns.ts';
import { type InlineMedia, isLink } from '../support/inline-media.ts';
import { isObject, type JsonObject } from '../support/json-object.ts';
import { unsupportedField } from '../support/unsupported-field.ts';

/** An entry of Converse's `messages`. */
interface ConverseTurn {
  readonly role: string;
  readonly content: JsonObject[];
}

/** A conversation in Converse's form. */
export interface ConverseConversation {
  readonly system: readonly JsonObject[];
  readonly messages: readonly ConverseTurn[];
  /** Whether it ends with results of calls that no signed thought precedes. */
  readonly followsThoughtlessCalls: boolean;
}

const imageFormats: Readonly<Record<string, string>> = {
  'image/png': 'png',
  'image/jpeg': 'jpeg',
  'image/jpg': 'jpeg',
  'image/gif': 'gif',
  'image/webp': 'webp',
};

/** What the user says before an assistant that speaks first. */
const silence = '(The user has not said anything yet.)';

/** What the user says beside documents alone. It must not be blank. */
const besideDocuments = '.';

/**
 * The messages of a chat as system prompt and turns
 * (https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Message.html): Anthropic's, whose order and rules Converse
 * adopted, in Converse's form.
 *
 * - Blank text is left out: Converse refuses it. Turns of the same role that become adjacent are joined.
 * - Without tools Converse refuses calls and their results. If a request offers none, earlier ones become text, and the thoughts
 *   before them, whose signatures are bound to their tools, are left out.
 * - A chat that the assistant begins, as with a greeting, gets a turn of the user in front: Converse refuses it without one.
 * - A turn of documents without a text, as when an agent has read a PDF, gets one: Converse refuses it without.
 * - Signed thoughts return to Claude, which signed them; other models take none.
 * - Linked images and documents are fetched, because Converse takes no links to the web.
 * @throws ApiError 400 naming content that Converse does not support.
 */
export async function toConverseConversation(
  chat: SaidInChat,
  { family, hasTools }: { readonly family: BedrockModelFamily; readonly hasTools: boolean },
  media: InlineMedia,
): Promise<ConverseConversation> {
  const messages = await withFiles(chat.messages, media);
  const given = toAnthropicConversation({ ...chat, messages }, { systemTurns: false });
  const turns = hasTools ? given.messages : withoutCalls(given.messages);
  const writer = new BlockWriter(family);
  const merged: ConverseTurn[] = [];
  for (const { role, content } of turns) {
    const blocks = content.flatMap((block) => writer.write(block));
    const last = merged.at(-1);
    if (last?.role === role) addAll(last.content, blocks);
    else if (blocks.length > 0) merged.push({ role, content: blocks });
  }
  for (const { content } of merged) addMissingText(content);
  if (merged[0]?.role === 'assistant') merged.unshift({ role: 'user', content: [{ text: silence }] });
  return {
    system: given.system.flatMap((block) => writer.write(block)),
    messages: merged,
    followsThoughtlessCalls: followsThoughtlessCalls(turns),
  };
}

/** Adds a text to documents that stand without one, before a cache point at their end, which then is still there. */
function addMissingText(content: JsonObject[]): void {
  if (!content.some(({ document }) => document !== undefined) || content.some(({ text }) => text !== undefined)) return;
  const endsWithPoint = content.at(-1)?.cachePoint !== undefined;
  content.splice(endsWithPoint ? -1 : content.length, 0, { text: besideDocuments });
}

type UserPart = Exclude<Extract<ChatMessage, { role: 'user' }>['content'], string>[number];

/** The messages with images and documents themselves instead of links to them. */
async function withFiles(messages: readonly ChatMessage[], media: InlineMedia): Promise<ChatMessage[]> {
  const all: ChatMessage[] = [];
  // Sequential: everything fetched counts towards one bound.
  for (const [index, message] of messages.entries()) {
    if (message.role !== 'user' || typeof message.content === 'string') {
      all.push(message);
      continue;
    }
    const content: UserPart[] = [];
    for (const [at, part] of message.content.entries()) {
      content.push(await withFile(part, `messages[${index}].content[${at}]`, media));
    }
    all.push({ ...message, content });
  }
  return all;
}

async function withFile(part: UserPart, path: string, media: InlineMedia): Promise<UserPart> {
  if (part.type === 'image_url') {
    const param = `${path}.image_url.url`;
    const { type, data } = await media.fromImageUrl(part.image_url.url, param);
    if (!Object.hasOwn(imageFormats, type)) throw unsupportedField(param, 'use a PNG, JPEG, GIF or WebP image');
    return { ...part, image_url: { url: `data:${type};base64,${data}` } };
  }
  if (part.type !== 'file' || part.file.file_data === undefined || !isLink(part.file.file_data)) return part;
  const { type, data } = await media.fromPdfLink(part.file.file_data, `${path}.file.file_data`);
  return { ...part, file: { ...part.file, file_data: `data:${type};base64,${data}` } };
}

function isAboutTools({ type }: AnthropicBlock): boolean {
  return type === 'tool_use' || type === 'tool_result';
}

function withoutCalls(turns: readonly AnthropicTurn[]): readonly AnthropicTurn[] {
  if (!turns.some(({ content }) => content.some(isAboutTools))) return turns;
  return turns.map(({ role, content }) => ({ role, content: content.flatMap(asText) }));
}

function asText(block: AnthropicBlock): AnthropicBlock[] {
  switch (block.type) {
    case 'tool_use': {
      const text = `<tool_call id="${block.id}" name="${block.name}">\n${stringifyExact(block.input)}\n</tool_call>`;
      return [{ type: 'text', text }];
    }
    case 'tool_result': {
      const texts = blocksIn(block).map(({ text }) => text);
      const said = `${block.is_error === true ? failedPrefix : ''}${texts.join('\n')}`;
      return [{ type: 'text', text: `<tool_result id="${block.tool_use_id}">\n${said}\n</tool_result>` }];
    }
    case 'thinking':
    case 'redacted_thinking':
      return [];
    default:
      return [block];
  }
}

function blocksIn({ content }: AnthropicBlock): JsonObject[] {
  return Array.isArray(content) ? content.filter(isObject) : [];
}

function isBlank(text: unknown): boolean {
  return typeof text !== 'string' || text.trim() === '';
}

/** Writes the blocks of one request. */
class BlockWriter {
  private readonly family: BedrockModelFamily;
  /** The names of documents so far, each with the highest number that was tried behind it. */
  private readonly names = new Map<string, number>();

  constructor(family: BedrockModelFamily) {
    this.family = family;
  }

  write(block: AnthropicBlock): JsonObject[] {
    const content = this.contentOf(block);
    if (content === undefined) return [];
    const mayHavePoint = hasCachePointsAnywhere(this.family) ? mayPrecedePoint(content) : content.text !== undefined;
    return mayHavePoint ? [content, ...cachePoint(block, this.family)] : [content];
  }

  /** @returns undefined for a block that is left out. */
  private contentOf(block: AnthropicBlock): JsonObject | undefined {
    const source = isObject(block.source) ? block.source : {};
    switch (block.type) {
      case 'text':
        return isBlank(block.text) ? undefined : { text: block.text };
      case 'image': {
        const format = imageFormats[String(source.media_type)];
        return { image: { format, source: { bytes: source.data } } };
      }
      case 'document': {
        const isText = source.type === 'text';
        const bytes = isText ? Buffer.from(String(source.data)).toString('base64') : source.data;
        return { document: { format: isText ? 'txt' : 'pdf', name: this.nameOf(block), source: { bytes } } };
      }
      case 'tool_use':
        return { toolUse: { toolUseId: toolUseId(block.id), name: calledName(block.name), input: block.input } };
      case 'tool_result':
        return { toolResult: this.resultOf(block) };
      case 'thinking': {
        const reasoningText = { text: block.thinking, signature: block.signature };
        return this.family === 'claude' ? { reasoningContent: { reasoningText } } : undefined;
      }
      case 'redacted_thinking':
        return this.family === 'claude' ? { reasoningContent: { redactedContent: block.data } } : undefined;
      default:
        return undefined;
    }
  }

  /** A tool's result. Models that know no failed ones read it in the text. */
  private resultOf(block: AnthropicBlock): JsonObject {
    const texts = blocksIn(block).flatMap(({ text }) => (isBlank(text) ? [] : [String(text)]));
    const isFailed = block.is_error === true;
    const hasStatus = hasResultStatus(this.family);
    if (isFailed && !hasStatus) texts[0] = `${failedPrefix}${texts[0] ?? ''}`;
    return {
      toolUseId: toolUseId(block.tool_use_id),
      content: texts.map((text) => ({ text })),
      ...(isFailed && hasStatus && { status: 'error' }),
    };
  }

  /** A document's name: only characters that Converse allows, and unique in the request. */
  private nameOf({ title }: AnthropicBlock): string {
    const allowed = String(title ?? '').replace(/[^a-zA-Z0-9\s\-()[\]]/g, ' ');
    const name = allowed.replace(/\s+/g, ' ').trim().slice(0, 180) || 'document';
    let number = this.names.get(name) ?? 1;
    let unique = name;
    while (this.names.has(unique)) {
      number += 1;
      unique = `${name} ${number}`;
    }
    this.names.set(name, number);
    if (unique !== name) this.names.set(unique, 1);
    return unique;
  }
}

/** An id of a call, by its SHA-256 if it is longer than Converse takes: some vendors and proxies have a signature in it. */
function toolUseId(id: unknown): unknown {
  return typeof id === 'string' && id.length > 64 ? createHash('sha256').update(id).digest('hex') : id;
}

/** Converse takes names of 64 characters of calls, too, which Claude's own may exceed: a conversation may come from there. */
function calledName(name: unknown): unknown {
  return typeof name === 'string' ? flatToolName(undefined, name) : name;
}

/** Converse marks the end of the cached part by a separate block; the lifetime is as in Anthropic's mark. */
export function cachePoint({ cache_control: mark }: JsonObject, family: BedrockModelFamily): JsonObject[] {
  if (!isObject(mark) || !hasCachePoints(family)) return [];
  return [{ cachePoint: { type: 'default', ...(family === 'claude' && mark.ttl != null && { ttl: mark.ttl }) } }];
}

/**
 * Whether a cache point may come right behind a block. Converse fails to translate one behind a document that is not a PDF
 * (https://github.com/strands-agents/harness-sdk/issues/1966).
 */
export function mayPrecedePoint({ document }: JsonObject): boolean {
  return !isObject(document) || document.format === 'pdf';
}
