import { parseExact, stringifyExact } from '../../../shared/capabilities/exact-json.ts';
import { ApiError } from '../../../shared/errors.ts';
import { beginCall, growCall, toDelta } from '../support/chat-delta.ts';
import { DeltaStream, SseReader, TokenTemplate } from '../support/delta-stream.ts';
import { isObject, isText, type JsonObject, parseObject } from '../support/json-object.ts';
import type { FrameSink, OpenAnswer, VendorAnswer, VendorUsage } from '../vendor.ts';
import { finishOf, readMessage, serviceTierOf, toChatUsage, toThinkingBlock } from './answer.ts';
import type { AnthropicErrors } from './errors.ts';

/** A block that has not ended. */
interface OpenBlock {
  readonly type: unknown;
  /** Of a tool call: its index among the calls, and whether any of its arguments have come. */
  readonly call: number;
  hasArguments: boolean;
  /** Of a thought, which is repeated whole, with its signature, at its end. */
  thinking: string;
  signature: string;
}

const unfinished = { finish_reason: null };
/** The text before the token in text events. */
const textStart = /"delta":\s*\{\s*"type":\s*"text_delta",\s*"text":\s*/;

/**
 * One streamed message (https://docs.anthropic.com/en/docs/build-with-claude/streaming): events in, `delta` frames of a chat out.
 * The role comes with the first frame that has content, so that a call that fails earlier can be repeated.
 */
export class AnthropicStream extends DeltaStream implements OpenAnswer {
  private readonly errors: AnthropicErrors;
  private readonly beginsWithCounts: boolean;
  private readonly events = new SseReader((data) => this.readEvent(data));
  private readonly blocks = new Map<unknown, OpenBlock>();
  private calls = 0;
  private counts: JsonObject = {};
  /** Whether the output was counted after its beginning: the first event counts the first token at most. */
  private isOutputCounted = false;
  private usage: VendorUsage = null;
  private tier: JsonObject = {};
  private hasStopped = false;
  /** Whether it has said or called anything: a message without either has an empty text, as clients keep it in their history. */
  private hasContent = false;
  private template: TokenTemplate | undefined;

  constructor(
    errors: AnthropicErrors,
    sink: FrameSink,
    { beginsWithCounts = false }: { readonly beginsWithCounts?: boolean | undefined } = {},
  ) {
    super(sink);
    this.errors = errors;
    this.beginsWithCounts = beginsWithCounts;
  }

  /** A whole message, sent in answer to a streamed request, becomes a single chunk. */
  writeMessage(text: string): void {
    const { message, finish, tier, usage } = readMessage(this.errors.answer(text));
    this.usage = usage;
    this.isOutputCounted = true;
    this.tier = tier;
    this.writeDelta(toDelta(message), finish);
    this.hasStopped = true;
  }

  /** Handles the end of the body. @throws ApiError when the vendor stopped before its answer was complete. */
  end(): VendorAnswer {
    if (!this.hasStopped) {
      throw new ApiError('server_error', "The model's vendor ended its stream before the answer was whole.");
    }
    const usage = this.isOutputCounted ? this.usage : null;
    return { body: JSON.stringify({ usage }), usage, tier: this.tier.service_tier };
  }

  /** Its first event counts the input, cached parts by themselves. */
  usageSoFar(): VendorUsage {
    return this.usage;
  }

  override failure(thrown: unknown): ApiError {
    return this.errors.of(super.failure(thrown));
  }

  protected override take(bytes: Buffer): void {
    this.events.read(bytes);
  }

  /** Unknown kinds of events are skipped: Anthropic announces that it may add some. */
  private readEvent(data: string): void {
    if (this.isDone || data === '') return;
    const frame = this.template?.frame(data);
    if (frame !== undefined) {
      this.write(frame);
      return;
    }
    const event = parseObject(data, parseExact);
    switch (event.type) {
      case 'content_block_delta':
        this.growBlock(event);
        this.makeTemplate(event, data);
        return;
      case 'content_block_start':
        this.beginBlock(event);
        return;
      case 'content_block_stop':
        this.endBlock(event);
        return;
      case 'message_start':
        if (isObject(event.message)) this.count(event.message);
        return;
      case 'message_delta': {
        this.count(event);
        this.isOutputCounted ||= isObject(event.usage) && typeof event.usage.output_tokens === 'number';
        const { delta } = event;
        if (!isObject(delta) || delta.stop_reason == null) return;
        this.writeDelta(this.hasContent ? {} : { content: '' }, finishOf(delta));
        this.hasStopped = true;
        return;
      }
      case 'message_stop':
        this.isDone = true;
        return;
      case 'error':
        this.fail(this.errors.reported(data));
    }
  }

  /** Later counts are of the whole message; counts that the vendor does not repeat are kept. */
  private count({ usage }: JsonObject): void {
    if (!isObject(usage)) return;
    for (const [name, value] of Object.entries(usage)) if (value !== null) this.counts[name] = value;
    this.usage = toChatUsage(this.counts);
    this.tier = serviceTierOf(this.counts);
  }

  private beginBlock({ index, content_block: started }: JsonObject): void {
    if (!isObject(started)) throw unknownShape();
    const { type, text, thinking, id, name, input } = started;
    const isCall = type === 'tool_use';
    const block = { type, call: isCall ? this.calls++ : -1, hasArguments: false, thinking: '', signature: '' };
    this.blocks.set(index, block);
    if (type === 'text') this.grow(block, { type: 'text_delta', text });
    else if (type === 'thinking') this.grow(block, { type: 'thinking_delta', thinking });
    else if (type === 'redacted_thinking') this.writeDelta({ thinking_blocks: [toThinkingBlock(started)] });
    else if (isCall) {
      // Vendors that merely speak Anthropic's wire may send the whole input here.
      const isWhole = isObject(input) && Object.keys(input).length > 0;
      block.hasArguments = isWhole;
      this.writeDelta(beginCall(block.call, id, name, isWhole ? stringifyExact(input) : ''));
    }
  }

  private growBlock({ index, delta }: JsonObject): void {
    const block = this.blocks.get(index);
    if (block === undefined || !isObject(delta)) throw unknownShape();
    this.grow(block, delta);
  }

  private grow(block: OpenBlock, delta: JsonObject): void {
    const { type, text, thinking, signature, partial_json: json } = delta;
    if (type === 'text_delta') {
      if (isText(text)) this.writeDelta({ content: text });
    } else if (type === 'input_json_delta') {
      if (!isText(json) || block.call < 0) return;
      block.hasArguments = true;
      this.writeDelta(growCall(block.call, json));
    } else if (type === 'thinking_delta') {
      if (!isText(thinking)) return;
      block.thinking += thinking;
      this.writeDelta({ reasoning_content: thinking });
    } else if (type === 'signature_delta' && isText(signature)) {
      block.signature += signature;
    }
  }

  private endBlock({ index }: JsonObject): void {
    const block = this.blocks.get(index);
    if (block === undefined) throw unknownShape();
    this.blocks.delete(index);
    // It contains the number of its block.
    this.template = undefined;
    if (block.type === 'thinking') {
      this.writeDelta({ thinking_blocks: [toThinkingBlock({ ...block })] });
    } else if (block.call >= 0 && !block.hasArguments) {
      // A missing input becomes an empty one, because clients parse it.
      this.writeDelta(growCall(block.call, '{}'));
    }
  }

  /** The text events of a block differ in nothing else: those that follow need no parsing. */
  private makeTemplate({ delta }: JsonObject, data: string): void {
    if (this.template !== undefined || !isObject(delta) || delta.type !== 'text_delta' || this.frames < 2) return;
    const toFrame = (filled: string): string => {
      const { text } = (parseObject(filled) as { delta: { text: string } }).delta;
      return JSON.stringify(toChunk({ content: text }, unfinished));
    };
    this.template = TokenTemplate.from(data, toFrame, textStart);
  }

  private writeDelta(delta: JsonObject, end: JsonObject = unfinished): void {
    const isFirst = this.frames === 0;
    this.hasContent ||= delta.content !== undefined || delta.tool_calls !== undefined;
    const chunk = toChunk(isFirst ? { role: 'assistant', ...delta } : delta, end);
    if (!isFirst) {
      this.write(JSON.stringify(chunk));
      return;
    }
    const counts = this.beginsWithCounts && this.usage !== null && { usage: this.usage };
    this.write(JSON.stringify({ ...chunk, ...this.tier, ...counts }));
  }
}

function toChunk(delta: JsonObject, end: JsonObject): JsonObject {
  return { choices: [{ index: 0, delta, ...end }] };
}

function unknownShape(): ApiError {
  return new ApiError('server_error', "The model's vendor sent an event of an unknown shape.");
}
