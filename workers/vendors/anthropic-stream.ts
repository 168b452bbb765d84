import { ApiError } from '../../shared/errors.ts';
import type { Reading } from '../http.ts';
import { SseReader } from '../sse-reader.ts';
import { finishOf, readMessage, serviceTierOf, toChatUsage, toThinkingBlock } from './anthropic-answer.ts';
import type { AnthropicErrors } from './anthropic-errors.ts';
import { interrupted } from './interrupted.ts';
import { isObject, type JsonObject } from './json-object.ts';
import type { FrameSink, VendorAnswer, VendorUsage } from './vendor.ts';

/** A block that has not ended. */
interface OpenBlock {
  readonly type: unknown;
  /** Of a tool call: its place among the calls, and whether any of its arguments were told. */
  readonly call: number;
  hasArguments: boolean;
  /** Of a thought, which is repeated whole, with its signature, at its end. */
  thinking: string;
  signature: string;
}

const unfinished = { finish_reason: null };

/**
 * One streamed message (https://docs.anthropic.com/en/docs/build-with-claude/streaming): events in, `delta` frames of a chat
 * out. The role goes with the first that says something, so that what fails before can be asked again.
 */
export class AnthropicStream {
  private readonly errors: AnthropicErrors;
  private readonly sink: FrameSink;
  private readonly events = new SseReader((data) => this.readEvent(data));
  private readonly blocks = new Map<unknown, OpenBlock>();
  private calls = 0;
  private counts: JsonObject = {};
  private usage: VendorUsage = null;
  private tier: JsonObject = {};
  private hasStopped = false;
  private isDone = false;
  private frames = 0;
  private isFull = false;
  private reported: ApiError | undefined;

  constructor(errors: AnthropicErrors, sink: FrameSink) {
    this.errors = errors;
    this.sink = sink;
  }

  /** Takes bytes of the body. @throws ApiError the error that the vendor reports. */
  read(bytes: Buffer): Reading {
    this.isFull = false;
    this.events.read(bytes);
    if (this.isDone) return 'finished';
    return this.isFull ? this.sink.drained() : undefined;
  }

  /** A whole message, sent in answer to a streamed request, becomes one chunk that says it all. */
  writeMessage(text: string): void {
    const { message, finish, tier, usage } = readMessage(this.errors.answer(text));
    const calls = message.tool_calls as JsonObject[] | undefined;
    const toolCalls = calls && { tool_calls: calls.map((call, index) => ({ index, ...call })) };
    this.usage = usage;
    this.tier = tier;
    this.write({ ...message, ...toolCalls }, finish);
    this.hasStopped = true;
  }

  /** The end of the body. @throws ApiError when the vendor stopped before its answer was whole. */
  end(): VendorAnswer {
    if (!this.hasStopped) {
      throw new ApiError('server_error', "The model's vendor ended its stream before the answer was whole.");
    }
    return { body: JSON.stringify({ usage: this.usage }), usage: this.usage };
  }

  /** What a failure of the call means. */
  failure(thrown: unknown): ApiError {
    const isFinal = this.frames === 0 || thrown === this.reported;
    return isFinal ? this.errors.of(thrown) : interrupted(thrown);
  }

  /** Kinds of events that are not known are passed over: Anthropic says that it may add some. */
  private readEvent(data: string): void {
    if (this.isDone || data === '') return;
    const event = this.errors.parse(data);
    switch (event.type) {
      case 'content_block_delta':
        this.growBlock(event);
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
        const { delta } = event;
        if (!isObject(delta) || delta.stop_reason == null) return;
        this.write({}, finishOf(delta));
        this.hasStopped = true;
        return;
      }
      case 'message_stop':
        this.isDone = true;
        return;
      case 'error':
        this.reported = this.errors.reported(data);
        throw this.reported;
    }
  }

  /** Later counts are of the whole message; those that the vendor does not repeat stand. */
  private count({ usage }: JsonObject): void {
    if (!isObject(usage)) return;
    for (const [name, value] of Object.entries(usage)) if (value !== null) this.counts[name] = value;
    this.usage = toChatUsage(this.counts);
    this.tier = serviceTierOf(this.counts);
  }

  private beginBlock({ index, content_block: begun }: JsonObject): void {
    if (!isObject(begun)) throw unknownShape();
    const { type, text, thinking, id, name, input } = begun;
    const isCall = type === 'tool_use';
    const block = { type, call: isCall ? this.calls++ : -1, hasArguments: false, thinking: '', signature: '' };
    this.blocks.set(index, block);
    if (type === 'text') this.grow(block, { type: 'text_delta', text });
    else if (type === 'thinking') this.grow(block, { type: 'thinking_delta', thinking });
    else if (type === 'redacted_thinking') this.write({ thinking_blocks: [toThinkingBlock(begun)] });
    else if (isCall) {
      // Those who only speak Anthropic's wire may send the whole input here.
      const isWhole = isObject(input) && Object.keys(input).length > 0;
      const call = { name, arguments: isWhole ? JSON.stringify(input) : '' };
      block.hasArguments = isWhole;
      this.write({ tool_calls: [{ index: block.call, id, type: 'function', function: call }] });
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
      if (isText(text)) this.write({ content: text });
    } else if (type === 'input_json_delta') {
      if (!isText(json) || block.call < 0) return;
      block.hasArguments = true;
      this.write({ tool_calls: [{ index: block.call, function: { arguments: json } }] });
    } else if (type === 'thinking_delta') {
      if (!isText(thinking)) return;
      block.thinking += thinking;
      this.write({ reasoning_content: thinking });
    } else if (type === 'signature_delta' && isText(signature)) {
      block.signature += signature;
    }
  }

  private endBlock({ index }: JsonObject): void {
    const block = this.blocks.get(index);
    if (block === undefined) throw unknownShape();
    this.blocks.delete(index);
    if (block.type === 'thinking') {
      this.write({ thinking_blocks: [toThinkingBlock({ ...block })] });
    } else if (block.call >= 0 && !block.hasArguments) {
      // No input is an empty one, which clients want to parse.
      this.write({ tool_calls: [{ index: block.call, function: { arguments: '{}' } }] });
    }
  }

  private write(delta: JsonObject, end: JsonObject = unfinished): void {
    const isFirst = this.frames === 0;
    const choices = [{ index: 0, delta: isFirst ? { role: 'assistant', ...delta } : delta, ...end }];
    const text = JSON.stringify(isFirst ? { choices, ...this.tier } : { choices });
    this.frames += 1;
    if (!this.sink.write({ type: 'delta', text })) this.isFull = true;
  }
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

function unknownShape(): ApiError {
  return new ApiError('server_error', "The model's vendor sent an event of an unknown shape.");
}
