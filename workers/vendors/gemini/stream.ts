import { randomUUID } from 'node:crypto';
import { parseExact } from '../../../shared/capabilities/exact-json.ts';
import { ApiError } from '../../../shared/errors.ts';
import { DeltaStream, SseReader } from '../support/delta-stream.ts';
import { isObject, type JsonObject, parseObject } from '../support/json-object.ts';
import type { FrameSink, OpenAnswer, VendorAnswer, VendorUsage } from '../vendor.ts';
import type { GeminiAnswerReader } from './answer-reader.ts';
import { isBlocked, readCandidate, toFinishReason, toTier, toUsage } from './candidate.ts';
import { PartialCall } from './partial-call.ts';
import { GeminiTokenTemplate } from './token-template.ts';

/** The state of a choice in a stream. */
interface GrowingChoice {
  calls: number;
  isFinished: boolean;
  readonly partial: PartialCall;
}

/** What a call wants of its stream. */
interface GeminiStreamOptions {
  /** Maximum number of calls of each choice; those beyond it are left out. */
  readonly maxCalls?: number | undefined;
  /** Whether the first frame has the counts so far. */
  readonly beginsWithCounts?: boolean | undefined;
  /** The caller's names of tools by Gemini's, where these differ. */
  readonly names?: ReadonlyMap<string, string>;
}

/**
 * One streamed answer (`streamGenerateContent?alt=sse`): each event is a partial `GenerateContentResponse`, each candidate in it
 * the next delta of its choice. Calls come whole. There is no last event: the body's end is the answer's.
 */
export class GeminiStream extends DeltaStream implements OpenAnswer {
  private readonly reader: GeminiAnswerReader;
  private readonly maxCalls: number;
  private readonly beginsWithCounts: boolean;
  private readonly names: ReadonlyMap<string, string>;
  private readonly events = new SseReader((data) => this.readEvent(data));
  private readonly choices = new Map<number, GrowingChoice>();
  private responseId: string | undefined;
  private metadata: JsonObject | undefined;
  private isTierShown = false;
  private template: GeminiTokenTemplate | undefined;
  /** Remaining tries to make a template: if none can be made, trying costs as much as it would save. */
  private templateTries = 3;

  constructor(
    reader: GeminiAnswerReader,
    sink: FrameSink,
    { maxCalls = Number.POSITIVE_INFINITY, beginsWithCounts = false, names = new Map() }: GeminiStreamOptions = {},
  ) {
    super(sink);
    this.reader = reader;
    this.maxCalls = maxCalls;
    this.beginsWithCounts = beginsWithCounts;
    this.names = names;
  }

  /** Takes an event's text, or that of a whole answer, which counts as a single event. */
  readEvent(data: string): void {
    if (data === '') return;
    const token = this.template?.read(data);
    if (token !== undefined) {
      this.writeToken(token);
      return;
    }
    const answer = parseObject(data, parseExact);
    if (answer.error) this.fail(this.reader.statusError(200, data, {}));
    this.takeAnswer(answer, data);
  }

  /** Handles the end of the body. @throws ApiError when the vendor stopped before its answer was complete. */
  end(): VendorAnswer {
    const choices = [...this.choices.values()];
    if (choices.length === 0 || choices.some(({ isFinished }) => !isFinished)) {
      throw new ApiError('server_error', "The model's vendor ended its stream before the answer was whole.");
    }
    const usage = this.usageSoFar();
    return { body: JSON.stringify({ usage }), usage, tier: toTier(this.metadata).service_tier };
  }

  /** Each event has the counts until then. */
  usageSoFar(): VendorUsage {
    this.addCounts(this.template?.takeCounts());
    return toUsage(this.metadata);
  }

  protected override take(bytes: Buffer): void {
    this.events.read(bytes);
  }

  private takeAnswer(answer: JsonObject, data: string): void {
    if (typeof answer.responseId === 'string') this.responseId ??= answer.responseId;
    this.addCounts(this.template?.takeCounts());
    this.addCounts(answer.usageMetadata);
    const candidates = Array.isArray(answer.candidates) ? answer.candidates : [];
    const token = candidates.length === 1 ? this.tokenOf(candidates[0]) : undefined;
    if (token !== undefined) {
      this.writeToken(JSON.stringify(token));
      if (this.template === undefined && this.templateTries-- > 0) this.template = GeminiTokenTemplate.from(data);
      return;
    }
    const choices = candidates.flatMap((candidate) => this.toChoice(candidate) ?? []);
    if (candidates.length === 0 && this.choices.size === 0 && isBlocked(answer)) choices.push(this.blocked());
    if (choices.length > 0) this.writeChunk({ choices, ...this.newTier(), ...this.firstCounts() });
  }

  /** Adds the counts of later events: those of the prompt are not in every event. */
  private addCounts(counts: unknown): void {
    if (isObject(counts)) this.metadata = Object.assign(this.metadata ?? {}, counts);
  }

  /** The service tier, once: every event has it among its counts. */
  private newTier(): JsonObject {
    if (this.isTierShown) return {};
    const tier = toTier(this.metadata);
    this.isTierShown = tier.service_tier !== undefined;
    return tier;
  }

  /** The counts until the first frame, if it is to have them: those of the input are whole by then. */
  private firstCounts(): JsonObject {
    if (!this.beginsWithCounts || this.hasBegun) return {};
    const usage = toUsage(this.metadata);
    return usage === null ? {} : { usage };
  }

  /** The text of a candidate that adds only text to the first choice: nearly all do, and need no further parsing. */
  private tokenOf(candidate: unknown): string | undefined {
    if (!isObject(candidate) || candidate.index || candidate.finishReason || candidate.logprobsResult) return undefined;
    if (!this.choices.has(0) || !isObject(candidate.content)) return undefined;
    const { parts } = candidate.content;
    if (!Array.isArray(parts) || parts.length !== 1 || !isObject(parts[0])) return undefined;
    const { text, thought, thoughtSignature, functionCall } = parts[0];
    if (typeof text !== 'string' || text === '' || thought || thoughtSignature || functionCall) return undefined;
    return text;
  }

  /** The addition of a candidate to its choice; undefined if there is none. */
  private toChoice(candidate: unknown): JsonObject | undefined {
    const index = isObject(candidate) && typeof candidate.index === 'number' ? candidate.index : 0;
    const previous = this.choices.get(index);
    const choice = previous ?? { calls: 0, isFinished: false, partial: new PartialCall() };
    this.responseId ??= randomUUID();
    const { maxCalls, responseId, names } = this;
    const context = { callsBefore: choice.calls, maxCalls, responseId, names };
    const { fields, calls, logprobs, finish } = readCandidate(candidate, context, choice.partial);
    if (finish === null && logprobs === null && Object.keys(fields).length === 0) {
      if (choice.partial.isOpen) this.choices.set(index, choice);
      return undefined;
    }
    if (Array.isArray(fields.tool_calls)) {
      fields.tool_calls = fields.tool_calls.map((call, position) => ({ index: choice.calls + position, ...call }));
    }
    choice.calls += calls;
    choice.isFinished ||= finish !== null;
    this.choices.set(index, choice);
    return {
      index,
      delta: previous === undefined ? { role: 'assistant', content: calls > 0 ? null : '', ...fields } : fields,
      ...(logprobs !== null && { logprobs }),
      finish_reason: finish === null ? null : toFinishReason(finish, choice.calls > 0),
    };
  }

  private blocked(): JsonObject {
    this.choices.set(0, { calls: 0, isFinished: true, partial: new PartialCall() });
    return { index: 0, delta: { role: 'assistant', content: '' }, finish_reason: 'content_filter' };
  }

  private writeToken(token: string): void {
    this.write(`{"choices":[{"index":0,"delta":{"content":${token}},"finish_reason":null}]}`);
  }
}
