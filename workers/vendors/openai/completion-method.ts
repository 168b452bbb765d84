import { ApiError } from '../../../shared/errors.ts';
import type { HttpClient, JsonBody } from '../../http/http-client.ts';
import { type RequestBody, requestText } from '../request-body.ts';
import { callInPlace, DeltaStream, SseReader, TokenTemplate } from '../support/delta-stream.ts';
import { isObject, type JsonObject, parseObject } from '../support/json-object.ts';
import type { FrameSink, OpenAnswer, VendorAnswer, VendorCall, VendorMethod, VendorUsage } from '../vendor.ts';
import type { OpenAiAnswerReader } from './answer-reader.ts';
import { type AnswerShape, type ChunkShape, isReportedError, removeIdentity, shapeUsage } from './shape.ts';

/** Fields of a chunk that carry nothing by themselves: without choices such a chunk only carried the usage. */
const envelope = new Set(['choices', 'service_tier', 'system_fingerprint', 'obfuscation']);

/** The differences between the two kinds of completions, chats and legacy ones, on OpenAI's wire. */
export interface CompletionKind {
  /** `/chat/completions` */
  readonly path: string;
  /** A choice of a whole answer as in a chunk; undefined for one without an answer. */
  readonly toChunkChoice: (choice: JsonObject) => JsonObject | undefined;
  /** Whether a chunk's choice adds text in the field that a TokenTemplate uses. */
  readonly hasToken: (choice: JsonObject) => boolean;
  /** Translates the request's text into the vendor's own fields; undefined: it passes unread. */
  readonly adaptRequest?: ((request: string, model: string) => string) | undefined;
  /** Converts a vendor's answers to OpenAI's own shape. @param request as the caller made it */
  readonly shapeFor: (request: RequestBody) => AnswerShape;
  /** `false`: a stream's usage comes unrequested. */
  readonly asksUsage?: boolean;
  /** The request to send in place of one that the vendor has refused; undefined: there is none, as for one that this has made. */
  readonly afterRefusal?: (error: unknown, call: VendorCall) => string | undefined;
}

/** Completions of a kind: the request passes unread, the answer without the fields that the gateway owns. */
export function completionMethod(
  http: HttpClient,
  answerReader: OpenAiAnswerReader,
  kind: CompletionKind,
): VendorMethod {
  const { path } = kind;
  const complete: VendorMethod = async (call, sink) => {
    const { model, stream: isStream, signal, silenceMs, holder } = call;
    const request = kind.adaptRequest?.(requestText(call.request), model) ?? call.request;
    const body = composeRequest({ model, stream: isStream, request, asksUsage: kind.asksUsage });
    const shape = kind.shapeFor(call.request);
    let stream: ChunkStream | undefined;
    try {
      if (!isStream) return answerReader.held(await http.post({ path, body, signal, silenceMs, holder }), shape);
      const chunks = new ChunkStream(answerReader, sink, { kind, shape });
      stream = chunks;
      if (call.run) call.run.openAnswer = chunks;
      const text = await http.post({ path, body, signal, silenceMs, holder, onChunk: (bytes) => chunks.read(bytes) });
      if (text !== null) chunks.writeCompletion(text);
      return chunks.end();
    } catch (thrown) {
      return await complete(callInPlace(thrown, stream, call, kind.afterRefusal), sink);
    }
  };
  return complete;
}

/** What is read of a request to see which field is its first: `stream_options`, if it has that. */
const firstBytes = 64;

/**
 * Prepends the model, and the fields of a stream, to the request, which is passed on unread.
 * @param asksUsage `false`: the vendor does not support `stream_options`
 */
export function composeRequest({
  model,
  stream,
  request,
  asksUsage = true,
}: Pick<VendorCall, 'model' | 'stream' | 'request'> & { asksUsage?: boolean | undefined }): JsonBody {
  const from = request.indexOf('{') + 1;
  const first =
    typeof request === 'string'
      ? request.slice(from, from + firstBytes)
      : request.toString('latin1', from, from + firstBytes);
  const isAsked = !asksUsage || first.startsWith('"stream_options":');
  const options = isAsked ? '' : ',"stream_options":{"include_usage":true}';
  const streaming = stream ? `,"stream":true${options}` : '';
  const separator = /^\s*\}/.test(first) ? '' : ',';
  const head = `{"model":${JSON.stringify(model)}${streaming}${separator}`;
  return typeof request === 'string' ? head + request.slice(from) : [Buffer.from(head), request.subarray(from)];
}

/** One streamed answer: events in, `delta` frames out. */
class ChunkStream extends DeltaStream implements OpenAnswer {
  private readonly answerReader: OpenAiAnswerReader;
  private readonly kind: CompletionKind;
  private readonly events = new SseReader((data, type) => this.readEvent(data, type));
  private readonly shape: AnswerShape;
  private readonly chunks: ChunkShape;
  private usage: VendorUsage = null;
  /** What the last chunk that names a service tier has said. */
  private tier: unknown;
  private template: TokenTemplate | undefined;
  /** Remaining tries to make a template: if none can be made, trying costs as much as it would save. */
  private templateTries = 3;
  private readonly started = new Set<unknown>();
  private readonly finished = new Set<unknown>();

  constructor(
    answerReader: OpenAiAnswerReader,
    sink: FrameSink,
    { kind, shape }: { kind: CompletionKind; shape: AnswerShape },
  ) {
    super(sink);
    this.answerReader = answerReader;
    this.kind = kind;
    this.shape = shape;
    this.chunks = shape.chunks();
  }

  /** Some vendors answer a streamed request with a whole completion: it becomes a single chunk. */
  writeCompletion(text: string): void {
    const completion = this.answerReader.completion(text);
    this.shape.whole(completion);
    const choices = completion.choices.map((choice, index) => {
      const changed = isObject(choice) ? this.kind.toChunkChoice(choice) : undefined;
      if (changed === undefined) {
        throw new ApiError('server_error', "The model's vendor answered with a choice that says nothing.");
      }
      return { index, ...changed };
    });
    this.takeChunk({ ...completion, choices });
    this.isDone = true;
  }

  /**
   * Handles the end of the body. Some vendors omit `[DONE]`: an answer whose every choice has its finish reason is also complete.
   * One without any choice never is.
   * @throws ApiError when the vendor stopped before its answer was complete.
   */
  end(): VendorAnswer {
    if (this.started.size === 0 || (!this.isDone && this.finished.size < this.started.size)) {
      throw new ApiError('server_error', "The model's vendor ended its stream before the answer was whole.");
    }
    const usage = this.usageSoFar();
    return { body: JSON.stringify({ usage }), usage, tier: this.tier };
  }

  /** xAI, Perplexity and some others count in each chunk, the others in the last one. */
  usageSoFar(): VendorUsage {
    return shapeUsage(this.usage);
  }

  protected override take(bytes: Buffer): void {
    this.events.read(bytes);
  }

  private readEvent(data: string, type: string | undefined): void {
    if (this.isDone || data === '') return;
    if (data.startsWith('[DONE]')) {
      const ends = this.chunks.end();
      if (ends !== undefined) this.takeChunk({ choices: ends });
      this.isDone = true;
      return;
    }
    const frame = type === 'error' ? undefined : this.template?.frame(data);
    if (frame !== undefined) {
      this.write(frame);
      return;
    }
    const chunk = parseObject(data);
    if (type === 'error' || isReportedError(chunk)) this.fail(this.answerReader.reportedError(data));
    if (this.template === undefined && this.templateTries > 0) this.makeTemplate(data, chunk);
    removeIdentity(chunk);
    this.chunks.take(chunk);
    this.takeChunk(chunk);
  }

  /**
   * A template is made from a chunk that only adds text to the only choice: it ends nothing and counts nothing, and so do all
   * that match.
   */
  private makeTemplate(data: string, chunk: JsonObject): void {
    const [choice, another] = Array.isArray(chunk.choices) ? chunk.choices : [];
    if (another || !isObject(choice) || !this.kind.hasToken(choice) || !this.started.has(choice.index)) return;
    if (choice.finish_reason || chunk.usage) return;
    const toFrame = (text: string): string => {
      const sample = parseObject(text);
      removeIdentity(sample);
      this.chunks.take(sample);
      sample.usage = undefined;
      return JSON.stringify(sample);
    };
    this.templateTries -= 1;
    this.template = TokenTemplate.from(data, toFrame);
  }

  private takeChunk(chunk: JsonObject): void {
    if (isObject(chunk.usage)) this.usage = chunk.usage;
    // Groq has reported it only there.
    else if (isObject(chunk.x_groq) && isObject(chunk.x_groq.usage)) this.usage = chunk.x_groq.usage;
    if (chunk.service_tier != null) this.tier = chunk.service_tier;
    chunk.usage = undefined;
    chunk.choices ??= [];
    const { choices } = chunk;
    if (!Array.isArray(choices)) {
      throw new ApiError('server_error', "The model's vendor sent a chunk whose choices are no list.");
    }
    if (choices.length === 0 && isEmptyChunk(chunk)) return;
    for (const choice of choices) {
      this.started.add(choice?.index);
      if (!choice?.finish_reason) continue;
      this.finished.add(choice.index);
      // Moonshot reports it there, too, and to some callers only there.
      if (isObject(choice.usage)) this.usage ??= choice.usage;
      choice.usage = undefined;
    }
    this.writeChunk(chunk);
  }
}

function isEmptyChunk(chunk: JsonObject): boolean {
  for (const [name, value] of Object.entries(chunk)) {
    if (value !== undefined && value !== null && !envelope.has(name)) return false;
  }
  return true;
}
