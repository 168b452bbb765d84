import type { ChatMessage } from '../../../shared/capabilities/chat-message.ts';
import { failedPrefix, isFailedResult, readExtraContent } from '../../../shared/capabilities/thought-signature.ts';
import { ApiError } from '../../../shared/errors.ts';
import { addAll } from '../../../shared/runtime/collections.ts';
import { toolInput } from '../anthropic/turns.ts';
import { foreignSignature } from '../foreign-signatures.ts';
import type { JsonObject } from '../support/json-object.ts';
import { unsupportedField } from '../support/unsupported-field.ts';
import type { GeminiMedia } from './media.ts';
import { needsSignatures } from './thinking.ts';
import { geminiName } from './tools.ts';

/** A turn of Gemini's (https://ai.google.dev/api/caching#Content). */
interface GeminiContent {
  readonly role: 'user' | 'model';
  readonly parts: JsonObject[];
}

/** A chat's messages in Gemini's form. */
export interface GeminiConversation {
  readonly contents: readonly GeminiContent[];
  readonly systemInstruction?: { readonly parts: readonly JsonObject[] };
}

type Role<Name extends ChatMessage['role']> = Extract<ChatMessage, { role: Name }>;
type UserPart = Exclude<Role<'user'>['content'], string>[number];
type ToolCall = NonNullable<Role<'assistant'>['tool_calls']>[number];

/**
 * The messages of a chat as Gemini's conversation.
 *
 * - System messages before the first other message are the system instruction. Gemini has no such role later on: there they keep
 *   their position, as user text between `<system>` marks.
 * - Empty text is left out: Gemini refuses it. Consecutive messages of the assistant are one turn.
 * - Arguments that are no object, as those of a truncated call, are wrapped in one.
 * - A result is matched by the name of its function, which is that of the call with its `tool_call_id`. Consecutive results are
 *   one turn, because Gemini requires those of parallel calls together.
 * - Signatures of thoughts (`extra_content.google.thought_signature`, the name of Google's own OpenAI endpoint) return to where
 *   they came from. The reasoning itself (`reasoning_content`, `thinking_blocks`) does not: Gemini takes none.
 * @throws ApiError 400 naming the field that Gemini does not support.
 */
export async function toGeminiContents(
  messages: readonly ChatMessage[],
  model: string,
  media: GeminiMedia,
): Promise<GeminiConversation> {
  const builder = new ConversationBuilder(model, media);
  for (const [index, message] of messages.entries()) await builder.add(message, `messages[${index}]`);
  return builder.end();
}

class ConversationBuilder {
  private readonly media: GeminiMedia;
  private readonly isSigned: boolean;
  private readonly system: JsonObject[] = [];
  private readonly contents: GeminiContent[] = [];
  /** Names of the functions called so far, by call id. */
  private readonly calls = new Map<string, string>();
  /** The turn of results that more results may join. */
  private results: JsonObject[] | undefined;

  constructor(model: string, media: GeminiMedia) {
    this.media = media;
    this.isSigned = needsSignatures(model);
  }

  async add(message: ChatMessage, path: string): Promise<void> {
    if (message.role === 'tool') {
      this.addResult(message, path);
      return;
    }
    this.results = undefined;
    switch (message.role) {
      case 'system':
      case 'developer':
        this.addSystem(textOf(message.content));
        break;
      case 'user':
        this.push('user', await this.userParts(message.content, path));
        break;
      case 'assistant':
        this.push('model', this.assistantParts(message, path));
        break;
      case 'function':
        throw unsupportedField(`${path}.role`, 'give the results of functions as messages of the role tool');
    }
  }

  end(): GeminiConversation {
    // Gemini does not answer a system instruction alone.
    if (this.contents.length === 0) return { contents: [{ role: 'user', parts: this.system }] };
    return { contents: this.contents, ...(this.system.length > 0 && { systemInstruction: { parts: this.system } }) };
  }

  /** Gemini refuses calls in a turn of the model behind another one, so these become one. */
  private push(role: GeminiContent['role'], parts: JsonObject[]): void {
    const last = this.contents.at(-1);
    if (role === 'model' && last?.role === role) addAll(last.parts, parts);
    else if (parts.length > 0) this.contents.push({ role, parts });
  }

  private addSystem(text: string): void {
    if (text === '') return;
    if (this.contents.length === 0) this.system.push({ text });
    else this.push('user', [{ text: `<system>\n${text}\n</system>` }]);
  }

  private addResult(message: Role<'tool'>, path: string): void {
    const { tool_call_id: id, content } = message;
    const name = this.calls.get(id);
    if (name === undefined) throw invalid(`${path}.tool_call_id`, 'no earlier message has a tool call with this id');
    // As text, so that numbers keep their digits: Gemini calls a whole result `output`, and a failure `error`.
    const text = textOf(content);
    const isFailed = isFailedResult(message) && text.startsWith(failedPrefix);
    const response = isFailed ? { error: text.slice(failedPrefix.length) } : { output: text };
    const part = { functionResponse: { id, name, response } };
    if (this.results !== undefined) {
      this.results.push(part);
      return;
    }
    this.results = [part];
    this.push('user', this.results);
  }

  private async userParts(content: Role<'user'>['content'], path: string): Promise<JsonObject[]> {
    const parts: JsonObject[] = [];
    const given = typeof content === 'string' ? [{ type: 'text' as const, text: content }] : content;
    // Sequential: everything fetched counts towards one bound.
    for (const [index, part] of given.entries()) parts.push(await this.userPart(part, `${path}.content[${index}]`));
    return parts.filter(({ text }) => text !== '');
  }

  private async userPart(part: UserPart, path: string): Promise<JsonObject> {
    switch (part.type) {
      case 'text':
        return { text: part.text };
      case 'image_url':
        return await this.media.fromImageUrl(part.image_url.url, `${path}.image_url.url`);
      case 'input_audio':
        return this.media.fromBase64(part.input_audio.data, `audio/${part.input_audio.format}`);
      case 'file':
        if (part.file.file_data === undefined) {
          throw unsupportedField(`${path}.file.file_id`, 'give the file itself, as a data URL in file_data');
        }
        return await this.media.fromDocument(part.file.file_data, `${path}.file.file_data`);
    }
  }

  private assistantParts(message: Role<'assistant'>, path: string): JsonObject[] {
    const { content, refusal, tool_calls: toolCalls = [] } = message;
    for (const name of ['audio', 'function_call'] as const) {
      if (message[name] != null) throw unsupportedField(`${path}.${name}`, 'it is not supported with this model');
    }
    const texts = typeof content === 'string' ? [content] : (content ?? []).map(textOfPart);
    const parts: JsonObject[] = [...texts, refusal ?? ''].filter((text) => text !== '').map((text) => ({ text }));
    const signature = readExtraContent(message);
    if (signature !== undefined) sign(parts, signature);
    const calls = toolCalls.map((call, index) => this.callPart(call, `${path}.tool_calls[${index}]`));
    // Of parallel calls only the first is signed.
    const [first] = calls;
    const isUnsigned = calls.every((call) => call.thoughtSignature === undefined);
    if (first !== undefined && isUnsigned && this.isSigned) first.thoughtSignature = foreignSignature;
    return [...parts, ...calls];
  }

  private callPart(call: ToolCall, path: string): JsonObject {
    if (call.type !== 'function')
      throw unsupportedField(`${path}.type`, 'only functions are supported with this model');
    const { name, arguments: text } = call.function;
    const own = geminiName(name);
    this.calls.set(call.id, own);
    const signature = readExtraContent(call);
    return {
      functionCall: { id: call.id, name: own, args: toolInput(text) },
      ...(signature !== undefined && { thoughtSignature: signature }),
    };
  }
}

/** Signs the last text, or an empty one if there is none, as Gemini itself sends it. */
function sign(parts: JsonObject[], thoughtSignature: string): void {
  const last = parts.pop() ?? { text: '' };
  parts.push({ ...last, thoughtSignature });
}

type TextPart = Exclude<Exclude<Role<'assistant'>['content'], string | null | undefined>, string>[number];

function textOfPart(part: TextPart): string {
  return part.type === 'text' ? part.text : part.refusal;
}

function textOf(content: Role<'system'>['content']): string {
  return typeof content === 'string' ? content : content.map(({ text }) => text).join('\n');
}

function invalid(param: string, message: string): ApiError {
  return new ApiError('invalid_request_error', `Invalid '${param}': ${message}.`, { param });
}
