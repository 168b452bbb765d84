import { ApiError } from '../../../shared/errors.ts';
import type { HttpClient } from '../../http/http-client.ts';
import { SseReader } from '../../http/sse-reader.ts';
import { baseRespFault } from '../support/base-resp.ts';
import { DeltaStream } from '../support/delta-stream.ts';
import { isObject, type JsonObject, parseObject } from '../support/json-object.ts';
import { TokenTemplate } from '../support/token-template.ts';
import type { FrameSink, VendorAnswer, VendorMethod, VendorUsage } from '../vendor.ts';
import { type OpenAiAnswerReader, takeOffIdentity } from './answer-reader.ts';
import { composeRequest } from './request.ts';
import type { AnswerShape, ChunkShape } from './shape.ts';
import { shapeUsage } from './usage.ts';

/** Fields of a chunk that say nothing by themselves: without choices such a chunk only carried the usage. */
const envelope = new Set(['choices', 'service_tier', 'system_fingerprint', 'obfuscation']);

/** In what the two kinds of completions, of chats and legacy ones, differ on OpenAI's wire. */
export interface CompletionKind {
  /** `/chat/completions` */
  readonly path: string;
  /** A choice of a whole answer as a chunk has it; undefined for one without an answer in it. */
  readonly toChunkChoice: (choice: JsonObject) => JsonObject | undefined;
  /** Whether a chunk's choice adds text in the place that a TokenTemplate knows. */
  readonly hasToken: (choice: JsonObject) => boolean;
  /** Puts the request's text into the vendor's own words; undefined: it passes unread. */
  readonly adaptRequest?: ((request: string) => string) | undefined;
  /** Puts what a vendor says into OpenAI's own shape. */
  readonly shape: AnswerShape;
  /** `false`: a stream's usage comes unasked. */
  readonly asksUsage?: boolean;
}

/** Completions of a kind: the request passes unread, the answer without what the gateway owns. */
export function completionMethod(
  http: HttpClient,
  answerReader: OpenAiAnswerReader,
  kind: CompletionKind,
): VendorMethod {
  const { path } = kind;
  return async (call, sink) => {
    const { signal, silenceMs } = call;
    const request = kind.adaptRequest?.(call.request) ?? call.request;
    const body = composeRequest({ ...call, request, asksUsage: kind.asksUsage });
    if (!call.stream) {
      return answerReader.held(await http.post({ path, body, signal, silenceMs }), kind.shape);
    }
    const stream = new ChunkStream(answerReader, sink, kind);
    try {
      const text = await http.post({ path, body, signal, silenceMs, onChunk: (bytes) => stream.read(bytes) });
      if (text !== null) stream.writeCompletion(text);
      return stream.end();
    } catch (error) {
      throw stream.failure(error);
    }
  };
}

/** One streamed answer: events in, `delta` frames out. */
class ChunkStream extends DeltaStream {
  private readonly answerReader: OpenAiAnswerReader;
  private readonly kind: CompletionKind;
  private readonly events = new SseReader((data, type) => this.readEvent(data, type));
  private readonly shape: ChunkShape;
  private usage: VendorUsage = null;
  private template: TokenTemplate | undefined;
  /** Chunks from which a template may yet be made: where none can be, trying costs as much as it would save. */
  private templateTries = 3;
  private readonly begun = new Set<unknown>();
  private readonly finished = new Set<unknown>();

  constructor(answerReader: OpenAiAnswerReader, sink: FrameSink, kind: CompletionKind) {
    super(sink);
    this.answerReader = answerReader;
    this.kind = kind;
    this.shape = kind.shape.chunks();
  }

  /** Some vendors answer a streamed request with a whole completion: it becomes one chunk that says it all. */
  writeCompletion(text: string): void {
    const completion = this.answerReader.completion(text);
    this.kind.shape.whole(completion);
    const choices = completion.choices.map((choice, index) => {
      const changed = isObject(choice) ? this.kind.toChunkChoice(choice) : undefined;
      if (changed === undefined) {
        throw new ApiError('server_error', "The model's vendor answered with a choice that says nothing.");
      }
      return { index, ...changed };
    });
    this.writeChunk({ ...completion, choices });
    this.isDone = true;
  }

  /**
   * The end of the body. Some vendors leave `[DONE]` out: an answer whose every choice has its finish reason is whole too.
   * @throws ApiError when the vendor stopped before its answer was whole.
   */
  end(): VendorAnswer {
    if (!this.isDone && (this.begun.size === 0 || this.finished.size < this.begun.size)) {
      throw new ApiError('server_error', "The model's vendor ended its stream before the answer was whole.");
    }
    const usage = shapeUsage(this.usage);
    return { body: JSON.stringify({ usage }), usage };
  }

  protected override take(bytes: Buffer): void {
    this.events.read(bytes);
  }

  private readEvent(data: string, type: string | undefined): void {
    if (this.isDone || data === '') return;
    if (data.startsWith('[DONE]')) {
      const ends = this.shape.end();
      if (ends !== undefined) this.writeChunk({ choices: ends });
      this.isDone = true;
      return;
    }
    const frame = type === 'error' ? undefined : this.template?.frame(data);
    if (frame !== undefined) {
      this.write(frame);
      return;
    }
    const chunk = parseObject(data);
    const isError = chunk.error || type === 'error' || baseRespFault(chunk) !== undefined;
    if (isError) this.fail(this.answerReader.reportedError(data));
    if (this.template === undefined && this.templateTries > 0) this.makeTemplate(data, chunk);
    takeOffIdentity(chunk);
    this.shape.take(chunk);
    this.writeChunk(chunk);
  }

  /** A chunk that only adds text to the one choice there is: it ends nothing and counts nothing, and so do all that fit it. */
  private makeTemplate(data: string, chunk: JsonObject): void {
    const [choice, another] = Array.isArray(chunk.choices) ? chunk.choices : [];
    if (another || !isObject(choice) || !this.kind.hasToken(choice) || !this.begun.has(choice.index)) return;
    if (choice.finish_reason || chunk.usage) return;
    const toFrame = (text: string): string => {
      const sample = parseObject(text);
      takeOffIdentity(sample);
      this.shape.take(sample);
      sample.usage = undefined;
      return JSON.stringify(sample);
    };
    this.templateTries -= 1;
    this.template = TokenTemplate.from(data, toFrame);
  }

  private writeChunk(chunk: JsonObject): void {
    if (isObject(chunk.usage)) this.usage = chunk.usage;
    // Groq has told it there alone.
    else if (isObject(chunk.x_groq) && isObject(chunk.x_groq.usage)) this.usage = chunk.x_groq.usage;
    chunk.usage = undefined;
    chunk.choices ??= [];
    const { choices } = chunk;
    if (!Array.isArray(choices)) {
      throw new ApiError('server_error', "The model's vendor sent a chunk whose choices are no list.");
    }
    if (choices.length === 0 && saysNothing(chunk)) return;
    for (const choice of choices) {
      this.begun.add(choice?.index);
      if (!choice?.finish_reason) continue;
      this.finished.add(choice.index);
      // Moonshot tells it there, too, and to some callers there alone.
      if (isObject(choice.usage)) this.usage ??= choice.usage;
      choice.usage = undefined;
    }
    this.write(JSON.stringify(chunk));
  }
}

function saysNothing(chunk: JsonObject): boolean {
  for (const [name, value] of Object.entries(chunk)) {
    if (value !== undefined && value !== null && !envelope.has(name)) return false;
  }
  return true;
}
