import { writeThoughtSignature } from '../../../shared/capabilities/thought-signature.ts';
import type { SaidPiece } from '../chat/said-pieces.ts';
import type { ContentBlock, ContentDelta, MessageEvent } from './message-events.ts';

/** An unfinished block. */
interface GrowingBlock {
  readonly kind: 'text' | 'thinking' | 'redacted' | 'call';
  readonly call: number | undefined;
  id: string | undefined;
  name: string | undefined;
  /** Text, or data, that is not shown yet. */
  text: string;
  signature: string;
  isStarted: boolean;
}

/**
 * Shows output as blocks, of which Anthropic's streams have one open at a time. A chat may continue any of its tool calls at
 * any time, so the first call stays open to the end, and what follows it is shown after that, in order.
 */
export class MessageBlocks {
  readonly #jobId: string;
  /** The first one is, or is about to be, the open block. */
  readonly #blocks: GrowingBlock[] = [];
  /** The calls among them, by their indices at the vendor. */
  readonly #calls = new Map<number, GrowingBlock>();
  #index = 0;
  /** Signature of the text so far, while no call has followed it. */
  #textSignature = '';

  constructor(jobId: string) {
    this.#jobId = jobId;
  }

  /** Adds a piece and returns the resulting events. */
  say(piece: SaidPiece): MessageEvent[] {
    this.#add(piece);
    return this.#show(false);
  }

  /** Ends all blocks. */
  end(): MessageEvent[] {
    return this.#show(true);
  }

  #add(piece: SaidPiece): void {
    const last = this.#blocks.at(-1);
    switch (piece.kind) {
      case 'text':
      case 'refusal':
      case 'thinking': {
        const kind = piece.kind === 'thinking' ? 'thinking' : 'text';
        // A new thought starts after a signature.
        const grows = last?.kind === kind && last.signature === '' ? last : this.#open(kind);
        grows.text += piece.text;
        return;
      }
      case 'signature':
        this.#sign(piece.signature);
        return;
      case 'text signature':
        this.#textSignature = piece.signature;
        return;
      case 'redacted':
        this.#open('redacted').text = piece.data;
        return;
      case 'call': {
        const { call, id, name, text } = piece;
        const grows = this.#calls.get(call) ?? this.#openCall(call);
        grows.id ??= id;
        grows.name ??= name;
        grows.text += text;
      }
    }
  }

  #sign(signature: string): void {
    const last = this.#blocks.at(-1);
    const signed = last?.kind === 'thinking' && last.signature === '' ? last : this.#open('thinking');
    signed.signature = signature;
  }

  /** The text's signature is shown only before a call: an answer should end with its text, not with a thought. */
  #openCall(call: number): GrowingBlock {
    if (this.#textSignature !== '') this.#sign(writeThoughtSignature({ signature: this.#textSignature }));
    this.#textSignature = '';
    const block = this.#open('call', call);
    this.#calls.set(call, block);
    return block;
  }

  #open(kind: GrowingBlock['kind'], call?: number): GrowingBlock {
    const block = { kind, call, id: undefined, name: undefined, text: '', signature: '', isStarted: false };
    this.#blocks.push(block);
    return block;
  }

  #show(isEnd: boolean): MessageEvent[] {
    const events: MessageEvent[] = [];
    let over = 0;
    for (const block of this.#blocks) {
      const isOver = isEnd || (block.kind !== 'call' && over + 1 < this.#blocks.length);
      // A call starts with its name, which a vendor may send after its id.
      if (block.kind === 'call' && block.name === undefined && !isOver) break;
      this.#advance(block, events, isOver);
      if (!isOver) break;
      events.push({ type: 'content_block_stop', index: this.#index });
      this.#index += 1;
      over += 1;
    }
    // All at once: a vendor may have made a hundred thousand calls, and each would move all others.
    if (over > 0) this.#blocks.splice(0, over);
    if (isEnd) this.#calls.clear();
    return events;
  }

  #advance(block: GrowingBlock, events: MessageEvent[], isOver: boolean): void {
    const index = this.#index;
    if (!block.isStarted) {
      block.isStarted = true;
      events.push({ type: 'content_block_start', index, content_block: this.#start(block) });
    }
    const show = (delta: ContentDelta): void => {
      events.push({ type: 'content_block_delta', index, delta });
    };
    if (block.text !== '') {
      if (block.kind === 'text') show({ type: 'text_delta', text: block.text });
      else if (block.kind === 'thinking') show({ type: 'thinking_delta', thinking: block.text });
      else if (block.kind === 'call') show({ type: 'input_json_delta', partial_json: block.text });
      block.text = '';
    }
    if (isOver && block.signature !== '') show({ type: 'signature_delta', signature: block.signature });
  }

  #start({ kind, call, id, name, text }: GrowingBlock): ContentBlock {
    switch (kind) {
      case 'text':
        return { type: 'text', text: '', citations: [] };
      case 'thinking':
        return { type: 'thinking', thinking: '', signature: '' };
      case 'redacted':
        return { type: 'redacted_thinking', data: text };
      case 'call': {
        // A vendor may have no ids for calls, but the caller needs one.
        const ownId = id ?? `toolu_${this.#jobId}_${call}`;
        return { type: 'tool_use', id: ownId, name: name ?? '', input: {}, caller: { type: 'direct' } };
      }
    }
  }
}
