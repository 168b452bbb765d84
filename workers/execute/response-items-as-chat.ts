import { flatToolName } from '../../shared/capabilities/flat-tool-name.ts';
import { hostedCalls, type ResponseItem } from '../../shared/capabilities/response.ts';
import {
  readSignedThought,
  readUnsignedThought,
  type SignedThought,
} from '../../shared/capabilities/signed-thought.ts';
import { extraContent, readThoughtSignature } from '../../shared/capabilities/thought-signature.ts';
import { ApiError } from '../../shared/errors.ts';
import { isObject, type JsonObject } from '../vendors/support/json-object.ts';
import { chatParts, isText, requireText } from './response-content-as-chat.ts';

/** A turn of the model: it may have thought, spoken and called tools, and a chat has one message for all of it. */
interface AssistantTurn {
  readonly reasoning: string[];
  /** Of its messages. */
  readonly texts: string[];
  /** Characters of its texts, joined. */
  textLength: number;
  /** Claude's, each with the number of characters before it. */
  readonly thoughts: { readonly thought: SignedThought; readonly offset: number }[];
  readonly calls: JsonObject[];
}

/** A message of the chat, and the outputs of its calls: a chat takes nothing between the calls of a turn and their outputs. */
interface Entry {
  readonly message: JsonObject;
  readonly outputs: JsonObject[];
}

/** What is between texts that a chat has in one. */
const between = '\n\n';

/**
 * The messages of a chat for the items of a response. Consecutive items of the model join into one message. Pictures and files
 * from a tool's output go into a user message after the outputs of that turn, because a chat accepts only text from its tools,
 * and nothing between the outputs.
 *
 * A response accepts messages between calls and their outputs: Semantic Kernel repeats the question there. Messages before the first
 * output go before the calls, so that the chat still ends with the outputs; messages after it go behind the last output.
 */
export class ResponseItemsAsChat {
  readonly #entries = new Set<Entry>();
  /** Turns of the model by the ids of their calls. */
  readonly #callers = new Map<unknown, Entry>();
  #lastTurn: Entry | undefined;
  #turn: AssistantTurn | undefined;
  /** The fields that hold Google's signatures, by call id; the key undefined has that of the turn's text. */
  readonly #signatures = new Map<unknown, object>();
  /** Parts of outputs that wait for the last output of their turn. */
  #shown: JsonObject[] = [];

  addSystem(content: string | readonly JsonObject[]): void {
    this.#push({ role: 'system', content });
  }

  /** @param path of the item: `input[3]`. @throws ApiError 400 naming the path of what a chat cannot hold. */
  add(item: ResponseItem, path: string): void {
    const type = item.type ?? 'message';
    switch (type) {
      case 'message':
        this.#addMessage(item, path);
        break;
      case 'reasoning':
        this.#addReasoning(item);
        break;
      case 'function_call':
        this.#addCall(item, String(item.arguments));
        break;
      case 'custom_tool_call':
        this.#addCall(item, JSON.stringify({ input: item.input }));
        break;
      case 'function_call_output':
      case 'custom_tool_call_output':
        this.#addOutput(item, path);
        break;
      default:
        if (!hostedCalls.has(type)) throw notHeld(type, path);
    }
  }

  /** All messages; nothing can be added afterwards. */
  end(): readonly JsonObject[] {
    this.#endTurn();
    this.#endOutputs();
    return Array.from(this.#entries, ({ message, outputs }) => [message, ...outputs]).flat();
  }

  #addMessage({ role, content }: ResponseItem, path: string): void {
    const parts = chatParts(content, `${path}.content`);
    if (role === 'assistant') {
      requireText(parts, `${path}.content`);
      const text = parts.map(({ text }) => text).join('');
      const turn = this.#assistant();
      turn.textLength += text.length + (turn.texts.length > 0 ? between.length : 0);
      turn.texts.push(text);
    } else if (role === 'user') {
      this.#push({ role, content: contentOf(parts) });
    } else {
      requireText(parts, `${path}.content`);
      this.addSystem(contentOf(parts));
    }
  }

  /** Only its vendor can read encrypted content, unless the gateway has made it. */
  #addReasoning({ content, summary, encrypted_content: encrypted }: ResponseItem): void {
    const text = joinTexts(content) || joinTexts(summary) || (readUnsignedThought(encrypted) ?? '');
    if (text !== '') this.#assistant().reasoning.push(text);
    const thought = readSignedThought(encrypted);
    if (thought !== undefined) {
      const { thoughts, textLength: offset } = this.#assistant();
      thoughts.push({ thought, offset });
    }
    const signed = readThoughtSignature(encrypted);
    if (signed !== undefined) this.#signatures.set(signed.callId, extraContent(signed.signature));
  }

  #addCall({ call_id: id, namespace, name }: ResponseItem, given: string): void {
    const flatName = flatToolName(typeof namespace === 'string' ? namespace : undefined, String(name));
    this.#assistant().calls.push({ id, type: 'function', function: { name: flatName, arguments: given } });
  }

  #addOutput({ type, call_id: id, output }: ResponseItem, path: string): void {
    // A tool that puts nothing out, as one of an MCP server, has an empty list.
    const parts = Array.isArray(output) && output.length === 0 ? [] : chatParts(output, `${path}.output`);
    this.#endTurn();
    const caller = this.#callers.get(id);
    if (caller === undefined) throw noCall(type === 'function_call_output' ? 'function' : 'custom tool', id);
    const texts = parts.filter(isText);
    const others = parts.filter((part) => !isText(part));
    if (others.length > 0) {
      this.#shown.push({ type: 'text', text: `The tool call ${id} has put this out:` }, ...others);
      if (texts.length === 0) texts.push({ type: 'text', text: 'What this call has put out is in a message below.' });
    }
    const content = texts.map(({ text }) => text).join('\n');
    if (caller === this.#lastTurn && caller.outputs.length === 0) this.#moveToEnd(caller);
    caller.outputs.push({ role: 'tool', tool_call_id: id, content });
  }

  #assistant(): AssistantTurn {
    this.#endOutputs();
    this.#turn ??= { reasoning: [], texts: [], textLength: 0, thoughts: [], calls: [] };
    return this.#turn;
  }

  /** Adds a message that is not the model's. */
  #push(message: JsonObject): void {
    this.#endTurn();
    this.#endOutputs();
    this.#append(message);
  }

  #append(message: JsonObject): Entry {
    const entry = { message, outputs: [] };
    this.#entries.add(entry);
    return entry;
  }

  #moveToEnd(entry: Entry): void {
    this.#entries.delete(entry);
    this.#entries.add(entry);
  }

  #endTurn(): void {
    const textSignature = this.#signatures.get(undefined);
    this.#signatures.delete(undefined);
    if (this.#turn === undefined) return;
    const { reasoning, texts, calls } = this.#turn;
    const isOfThoughts = texts.length === 0 && calls.length === 0;
    // Claude refuses a turn of thoughts alone.
    const thoughts = isOfThoughts ? [] : this.#turn.thoughts;
    this.#turn = undefined;
    if (isOfThoughts && reasoning.length === 0) return;
    this.#lastTurn = this.#append({
      role: 'assistant',
      // Null only beside calls: vendors refuse an entirely empty message.
      content: texts.length === 0 && calls.length > 0 ? null : texts.join(between),
      ...(reasoning.length > 0 && { reasoning_content: reasoning.join(between) }),
      ...(thoughts.length > 0 && {
        thinking_blocks: thoughts.map(({ thought }) => thought),
        thinking_offsets: thoughts.map(({ offset }) => offset),
      }),
      ...(calls.length > 0 && { tool_calls: calls.map((call) => ({ ...call, ...this.#signatures.get(call.id) })) }),
      ...textSignature,
    });
    for (const { id } of calls) this.#callers.set(id, this.#lastTurn);
  }

  #endOutputs(): void {
    if (this.#shown.length === 0) return;
    this.#append({ role: 'user', content: this.#shown });
    this.#shown = [];
  }
}

/** A string if it can hold everything: not every vendor accepts parts. */
function contentOf(parts: readonly JsonObject[]): string | readonly JsonObject[] {
  const [first] = parts;
  if (parts.length !== 1 || first?.type !== 'text' || Object.keys(first).length > 2) return parts;
  return String(first.text);
}

function joinTexts(parts: unknown): string {
  if (!Array.isArray(parts)) return '';
  const texts = parts.map((part) => (isObject(part) ? part.text : undefined));
  return texts.filter((text) => typeof text === 'string').join(between);
}

/** In OpenAI's wording. */
function noCall(kind: string, id: unknown): ApiError {
  const message = `No tool call found for ${kind} call output with call_id ${String(id).slice(0, 200)}.`;
  return new ApiError('invalid_request_error', message, { param: 'input' });
}

function notHeld(type: string, path: string): ApiError {
  const message = `Items of the type '${type.slice(0, 100)}' are not offered for this model.`;
  return new ApiError('invalid_request_error', message, { param: path });
}
