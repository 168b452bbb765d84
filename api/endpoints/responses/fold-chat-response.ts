import { createHash } from 'node:crypto';
import { flatToolName } from '../../../shared/capabilities/flat-tool-name.ts';
import type { ResponseItem } from '../../../shared/capabilities/response.ts';
import { maxCallId } from '../../../shared/capabilities/response-items.ts';
import { type CallableTool, callableTools, type ResponseTool } from '../../../shared/capabilities/response-tools.ts';
import { writeSignedThought } from '../../../shared/capabilities/signed-thought.ts';
import { readExtraContent, writeThoughtSignature } from '../../../shared/capabilities/thought-signature.ts';
import { fieldsOf, numberOf, objectsOf, textOf } from '../../../shared/capabilities/vendor-values.ts';
import { saidBy } from '../chat/said-pieces.ts';
import { GrowingCall } from './growing-call.ts';
import { GrowingMessage, type ItemPosition } from './growing-message.ts';
import { GrowingReasoning, type ReasoningForm } from './growing-reasoning.ts';
import type { EmitEvent } from './response-event.ts';

type Fields = Record<string, unknown>;

/** A chat's call before its name is known: pieces of its arguments may come first. */
interface CallSlot {
  id: string | undefined;
  early: string;
  call: GrowingCall | undefined;
  outputIndex: number;
}

/** Facts of the request that the fold needs. */
export interface ChatResponseOptions extends ReasoningForm {
  readonly jobId: string;
  readonly tools: readonly ResponseTool[];
}

/**
 * Folds the chunks of a chat into the items of a response and emits OpenAI's events for each. A response is sequential:
 * reasoning, messages and calls end when another item starts. Only complete calls end then, since a chat may stream several
 * at once.
 */
export class ChatResponseFold {
  /** The ended items by output index. */
  readonly output: ResponseItem[] = [];
  finishReason: string | undefined;
  readonly #options: ChatResponseOptions;
  readonly #emit: EmitEvent;
  readonly #tools: ReadonlyMap<string, CallableTool>;
  readonly #calls = new Map<number, CallSlot>();
  /** Those that may have become whole since it was last looked: there may be a hundred thousand others. */
  readonly #grown = new Set<CallSlot>();
  #count = 0;
  #saysMore = false;
  /** Google's signature of the text so far, while no call has followed it: only calls need it. */
  #textSignature: string | undefined;
  #open: { readonly item: GrowingMessage | GrowingReasoning; readonly outputIndex: number } | undefined;

  constructor(options: ChatResponseOptions, emit: EmitEvent) {
    this.#options = options;
    this.#emit = emit;
    this.#tools = new Map(callableTools(options.tools).map((tool) => [flatToolName(tool.namespace, tool.name), tool]));
  }

  /** Adds the delta of a chunk's first choice; a response has no other. */
  take({ choices }: { readonly choices?: unknown }): void {
    for (const choice of objectsOf(choices)) {
      if (numberOf(choice.index) !== 0) continue;
      this.#takeDelta(fieldsOf(choice.delta), logprobsOf(choice));
      if (typeof choice.finish_reason === 'string') this.finishReason = choice.finish_reason;
    }
  }

  /** Ends open items. An answer without text is an empty message, unless it was truncated before it began. */
  end(): void {
    const isCut = this.incompleteReason !== undefined;
    if (!this.#saysMore && !isCut) this.#message().addText('', []);
    const status = isCut ? 'incomplete' : 'completed';
    this.#endOpen(status);
    for (const slot of this.#calls.values()) {
      if (slot.call === undefined && slot.outputIndex < 0) this.#openCall(slot, '');
      this.#endCall(slot, status);
    }
  }

  get incompleteReason(): string | undefined {
    if (this.finishReason === 'length') return 'max_output_tokens';
    return this.finishReason === 'content_filter' ? 'content_filter' : undefined;
  }

  #takeDelta(delta: Fields, logprobs: readonly Fields[]): void {
    if (objectsOf(delta.thinking_blocks).length > 0) this.#takeThoughts(delta);
    else this.#takeTexts(delta, logprobs);
    const refusal = textOf(delta.refusal);
    if (refusal !== '') this.#message().addRefusal(refusal);
    this.#textSignature = readExtraContent(delta) ?? this.#textSignature;
    for (const annotation of objectsOf(delta.annotations)) this.#message().addAnnotation(annotation);
    for (const call of objectsOf(delta.tool_calls)) this.#takeCall(call);
  }

  #takeTexts(delta: Fields, logprobs: readonly Fields[]): void {
    // Both names are common; a vendor that sends both repeats the text.
    const reasoning = textOf(delta.reasoning_content) || textOf(delta.reasoning);
    if (reasoning !== '') this.#reasoning().add(reasoning);
    const content = textOf(delta.content);
    if (content !== '' || logprobs.length > 0) this.#message().addText(content, logprobs);
  }

  /** The texts of a delta with Claude's thoughts where they stood: a whole answer has several. */
  #takeThoughts({ content, reasoning_content, reasoning, thinking_blocks, thinking_offsets }: Fields): void {
    for (const piece of saidBy({ content, reasoning_content, reasoning, thinking_blocks, thinking_offsets })) {
      if (piece.kind === 'text') this.#message().addText(piece.text, []);
      else if (piece.kind === 'thinking') this.#reasoning().add(piece.text);
      else if (piece.kind === 'signature') {
        const open = this.#reasoning();
        open.sign(writeSignedThought({ type: 'thinking', thinking: open.text, signature: piece.signature }));
      } else if (piece.kind === 'redacted' && piece.data !== '') {
        if (this.#open?.item instanceof GrowingReasoning) this.#endOpen('completed');
        this.#reasoning().sign(writeSignedThought({ type: 'redacted_thinking', data: piece.data }));
      }
    }
  }

  #reasoning(): GrowingReasoning {
    const open = this.#open?.item;
    if (open instanceof GrowingReasoning && !open.isSigned) return open;
    this.#endOpen('completed');
    const position = this.#position();
    const item = new GrowingReasoning(position, this.#options);
    this.#open = { item, outputIndex: position.outputIndex };
    return item;
  }

  #message(): GrowingMessage {
    const open = this.#open?.item;
    if (open instanceof GrowingMessage) return open;
    this.#endOpen('completed');
    this.#endWholeCalls();
    this.#saysMore = true;
    const position = this.#position();
    const item = new GrowingMessage(position);
    this.#open = { item, outputIndex: position.outputIndex };
    return item;
  }

  #takeCall({ index, id: given, function: said, ...more }: Fields): void {
    const { name, arguments: piece } = fieldsOf(said);
    const id = callIdOf(textOf(given));
    const signature = readExtraContent(more);
    if (signature !== undefined && id !== '') {
      this.#reasoning().sign(writeThoughtSignature({ callId: id, signature }));
    }
    let slot = this.#calls.get(numberOf(index));
    if (slot === undefined) {
      if (this.#textSignature !== undefined) {
        this.#reasoning().sign(writeThoughtSignature({ signature: this.#textSignature }));
        this.#textSignature = undefined;
      }
      slot = { id: undefined, early: '', call: undefined, outputIndex: -1 };
      this.#calls.set(numberOf(index), slot);
    }
    slot.id ??= id || undefined;
    if (slot.outputIndex < 0 && textOf(name) !== '') this.#openCall(slot, textOf(name));
    if (slot.outputIndex < 0) slot.early += textOf(piece);
    else if (textOf(piece) !== '') this.#grow(slot, textOf(piece));
  }

  #openCall(slot: CallSlot, name: string): void {
    this.#endOpen('completed');
    this.#endWholeCalls();
    this.#saysMore = true;
    const position = this.#position();
    const tool = this.#tools.get(name) ?? { type: 'function', name, namespace: undefined };
    slot.outputIndex = position.outputIndex;
    slot.call = new GrowingCall(position, tool, slot.id);
    if (slot.early !== '') this.#grow(slot, slot.early);
  }

  #grow(slot: CallSlot, piece: string): void {
    slot.call?.add(piece);
    this.#grown.add(slot);
  }

  #endWholeCalls(): void {
    for (const slot of this.#grown) if (slot.call?.isComplete) this.#endCall(slot, 'completed');
    this.#grown.clear();
  }

  #endCall(slot: CallSlot, status: 'completed' | 'incomplete'): void {
    if (slot.call === undefined) return;
    this.output[slot.outputIndex] = slot.call.end(status);
    slot.call = undefined;
  }

  #endOpen(status: 'completed' | 'incomplete'): void {
    if (this.#open === undefined) return;
    this.output[this.#open.outputIndex] = this.#open.item.end(status);
    this.#open = undefined;
  }

  #position(): ItemPosition {
    const outputIndex = this.#count;
    this.#count += 1;
    return { jobId: this.#options.jobId, outputIndex, emit: this.#emit };
  }
}

function logprobsOf({ logprobs }: Fields): readonly Fields[] {
  return objectsOf(fieldsOf(logprobs).content);
}

/**
 * A vendor's id of a call, or a stand-in for one that is longer than callers may send back: some vendors put the name of the tool
 * in it. The vendor knows none of earlier requests, so that only a call and its result must have the same.
 */
function callIdOf(given: string): string {
  return given.length <= maxCallId ? given : `call_${createHash('sha256').update(given).digest('hex').slice(0, 32)}`;
}
