import { ApiError } from '../../../shared/errors.ts';
import { beginCall, growCall, toDelta } from '../support/chat-delta.ts';
import { DeltaStream } from '../support/delta-stream.ts';
import { isObject, isText, type JsonObject, parseObject } from '../support/json-object.ts';
import type { FrameSink, VendorAnswer, VendorUsage } from '../vendor.ts';
import { converseFinish, converseTier, converseUsage, readConverse, thoughtBlock } from './answer.ts';
import type { BedrockErrors } from './errors.ts';
import { type EventStreamMessage, EventStreamReader } from './event-stream.ts';

/** A block that has not ended. Blocks of text and of thoughts begin with their first delta. */
interface OpenBlock {
  /** Of a tool call: its index among the calls (`leftOut`: it is one too many), and whether any of its arguments have come. */
  readonly call: number;
  hasArguments: boolean;
  /** Of a thought, which is repeated whole, with its signature, at its end. */
  thinking: string;
  signature: string;
  readonly redacted: Buffer[];
}

const unfinished = { finish_reason: null };
const leftOut = -2;

/**
 * One streamed answer (https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html): events in,
 * `delta` frames of a chat out. The role comes with the first frame that has content, so that a call that fails earlier can be
 * repeated.
 */
export class BedrockStream extends DeltaStream {
  private readonly errors: BedrockErrors;
  private readonly maxCalls: number;
  private readonly events = new EventStreamReader((message) => this.readMessage(message));
  private readonly blocks = new Map<unknown, OpenBlock>();
  private calls = 0;
  /** Whether it has said or called anything: a message without either has an empty text, as clients keep it in their history. */
  private hasContent = false;
  private usage: VendorUsage = null;
  private tier: JsonObject = {};
  /** How the answer ends, once that is known. */
  private finish: JsonObject | undefined;

  /** @param maxCalls maximum number of calls; those beyond it are left out */
  constructor(errors: BedrockErrors, sink: FrameSink, maxCalls: number) {
    super(sink);
    this.errors = errors;
    this.maxCalls = maxCalls;
  }

  /** A whole answer, sent to a streamed request, becomes a single chunk. */
  writeAnswer(text: string): void {
    const { message, finish, tier, usage } = readConverse(text, this.maxCalls);
    this.usage = usage;
    this.tier = tier;
    this.writeDelta(toDelta(message), finish, tier);
    this.isDone = true;
  }

  /** Handles the end of the body. @throws ApiError when the vendor stopped before its answer was complete. */
  end(): VendorAnswer {
    if (this.finish === undefined && !this.isDone) {
      throw new ApiError('server_error', "The model's vendor ended its stream before the answer was whole.");
    }
    if (!this.isDone) this.writeEnd();
    return { body: JSON.stringify({ usage: this.usage }), usage: this.usage, tier: this.tier.service_tier };
  }

  protected override take(bytes: Buffer): void {
    this.events.read(bytes);
  }

  /** Unknown types of events are skipped, so that Bedrock may add some. */
  private readMessage({ kind, type, text }: EventStreamMessage): void {
    if (this.isDone) return;
    if (kind !== 'event') this.fail(this.errors.inStream(type, text));
    const event = parseObject(text);
    switch (type) {
      case 'contentBlockDelta':
        this.growBlock(event);
        return;
      case 'contentBlockStart':
        this.beginBlock(event);
        return;
      case 'contentBlockStop':
        this.endBlock(event);
        return;
      case 'messageStop':
        this.finish = converseFinish(event);
        return;
      case 'metadata':
        // The last event, after the end of the message, which waits for the tier in it.
        if (this.finish === undefined) throw unknownShape();
        this.usage = converseUsage(event.usage);
        this.tier = converseTier(event);
        this.writeEnd();
        this.isDone = true;
        return;
    }
  }

  private beginBlock({ contentBlockIndex: index, start }: JsonObject): void {
    const { toolUse } = isObject(start) ? start : {};
    if (!isObject(toolUse)) return;
    if (this.calls >= this.maxCalls) {
      this.open(index, leftOut);
      return;
    }
    const { toolUseId: id, name } = toolUse;
    const { call } = this.open(index, this.calls++);
    this.writeDelta(beginCall(call, id, name));
  }

  private open(index: unknown, call: number): OpenBlock {
    const block = { call, hasArguments: false, thinking: '', signature: '', redacted: [] };
    this.blocks.set(index, block);
    return block;
  }

  private growBlock({ contentBlockIndex: index, delta }: JsonObject): void {
    if (!isObject(delta)) throw unknownShape();
    const { text, toolUse, reasoningContent } = delta;
    if (isText(text)) this.writeDelta({ content: text });
    else if (isObject(toolUse)) this.growToolUse(index, toolUse);
    else if (isObject(reasoningContent)) this.growThought(index, reasoningContent);
  }

  private growToolUse(index: unknown, { input }: JsonObject): void {
    const block = this.blocks.get(index);
    if (block === undefined || block.call === -1) throw unknownShape();
    if (!isText(input) || block.call === leftOut) return;
    block.hasArguments = true;
    this.writeDelta(growCall(block.call, input));
  }

  private growThought(index: unknown, { text, signature, redactedContent: redacted }: JsonObject): void {
    const block = this.blocks.get(index) ?? this.open(index, -1);
    if (isText(text)) {
      block.thinking += text;
      this.writeDelta({ reasoning_content: text });
    }
    if (isText(signature)) block.signature += signature;
    if (isText(redacted)) block.redacted.push(Buffer.from(redacted, 'base64'));
  }

  private endBlock({ contentBlockIndex: index }: JsonObject): void {
    const block = this.blocks.get(index);
    if (block === undefined) return;
    this.blocks.delete(index);
    if (block.call < 0) {
      const thought = thoughtBlock({ ...block, redacted: Buffer.concat(block.redacted).toString('base64') });
      if (thought !== undefined) this.writeDelta({ thinking_blocks: [thought] });
    } else if (!block.hasArguments) {
      // A missing input becomes an empty one, because clients parse it.
      this.writeDelta(growCall(block.call, '{}'));
    }
  }

  private writeEnd(): void {
    this.writeDelta(this.hasContent ? {} : { content: '' }, this.finish, this.tier);
  }

  private writeDelta(delta: JsonObject, end: JsonObject = unfinished, tier: JsonObject = {}): void {
    this.hasContent ||= delta.content !== undefined || delta.tool_calls !== undefined;
    const fullDelta = this.frames === 0 ? { role: 'assistant', ...delta } : delta;
    this.write(JSON.stringify({ choices: [{ index: 0, delta: fullDelta, ...end }], ...tier }));
  }
}

function unknownShape(): ApiError {
  return new ApiError('server_error', "The model's vendor sent an event of an unknown shape.");
}
