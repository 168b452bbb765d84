import { oneCallEach } from '../../../shared/capabilities/one-call-each.ts';
import type { ApiError } from '../../../shared/errors.ts';
import type { Frame } from '../../../shared/jobs/append.ts';
import type { View, ViewedJob } from '../../replies/view.ts';

/** View options of a completion. */
export interface CompletionViewOptions {
  /** Whether the stream ends with the usage. */
  readonly includeUsage: boolean;
}

/** The envelope of one kind of completion. */
export interface CompletionDress {
  /** Prefix of the job's id: `chatcmpl-`. */
  readonly idPrefix: string;
  readonly object: string;
  readonly chunkObject: string;
  /** Folds the deltas and the end of a streamed answer into a held body without its envelope. */
  readonly fold: (frames: readonly Frame[]) => Record<string, unknown>;
  /** Converts a folded choice to a chunk's; defaults to the identity. */
  readonly chunkChoice?: (choice: Record<string, unknown>) => Record<string, unknown>;
}

/** The end of an answer; with `choices` if it was held. */
interface WholeEnd {
  readonly choices?: Record<string, unknown>[];
  readonly usage?: unknown;
}

const json = (value: unknown): string => JSON.stringify(value);

/** Prepends the envelope to a frame's fields without parsing them, so a token costs only a string copy. */
function splice(head: string, text: string): string {
  return text === '{}' ? `${head}}` : `${head},${text.slice(1)}`;
}

/**
 * The error event in streams of completions. Clients that look for `error` find OpenAI's. The others read a chunk: one without `choices` ended
 * the answer of LangChain4j, Spring AI and simple-openai as if it were whole, so these are of a type that no chunk's can be.
 */
function completionErrorEvent(error: ApiError): string {
  return `data: ${json({ ...error.toWire(), choices: false })}`;
}

/**
 * The view of chat and legacy completions. Streamed: a chunk per delta; the end becomes the usage chunk, if requested, and
 * `[DONE]`. A held answer watched as a stream is one whole object and `[DONE]`; taken from the cache for a streamed request, it is one
 * chunk, or one for each tool call.
 */
export function completionView({
  idPrefix,
  object,
  chunkObject,
  fold,
  chunkChoice,
}: CompletionDress): View<CompletionViewOptions> {
  /** The leading fields of every object of an answer, open for the frame's own. */
  const envelope = (job: ViewedJob, objectName: string): string => {
    const created = Math.floor(job.createdAt / 1000);
    return `{"id":"${idPrefix}${job.id}","object":"${objectName}","created":${created},"model":${json(job.model)}`;
  };
  const toChunks = (choices: Record<string, unknown>[], rest: object): string[] =>
    oneCallEach({ choices: chunkChoice ? choices.map(chunkChoice) : choices, ...rest }).map(json);
  return {
    stream: (job) => {
      const includeUsage = job.viewOptions.includeUsage;
      const chunk = envelope(job, chunkObject) + (includeUsage ? ',"usage":null' : '');
      return (frame) => {
        if (frame.type === 'delta') return [`data: ${splice(chunk, frame.text)}`];
        if (frame.type !== 'end') return [];
        const { choices, usage, ...rest } = JSON.parse(frame.text) as WholeEnd;
        if (choices !== undefined && !job.stream) {
          return [`data: ${splice(envelope(job, object), frame.text)}`, 'data: [DONE]'];
        }
        const events = (choices ? toChunks(choices, rest) : []).map((text) => `data: ${splice(chunk, text)}`);
        if (!includeUsage) return [...events, 'data: [DONE]'];
        const last = `,"choices":[],"usage":${json(usage ?? null)}}`;
        return [...events, `data: ${envelope(job, chunkObject)}${last}`, 'data: [DONE]'];
      };
    },
    held: (job, frames) => {
      const end = frames.at(-1) as Frame;
      // A held call has one frame, whose text is the body already.
      const body = frames.length === 1 ? end.text : json(fold(frames));
      return splice(envelope(job, object), body);
    },
    // Megabytes with log probabilities, sounds or images.
    heldStart: (job) => ({ text: `${envelope(job, object)},`, replaces: 1 }),
    errorEvent: completionErrorEvent,
    // The deltas joined to one for each tool call, and the end unchanged: each is an event, as each of them was.
    exactFrames: 2,
    final: (frames) => {
      const deltas = frames.filter(({ type }) => type === 'delta');
      const end = frames.at(-1) as Frame;
      const [first] = deltas;
      if (first === undefined) return [end];
      const { choices, ...rest } = fold(deltas) as { choices: Record<string, unknown>[] };
      const joined = toChunks(choices, rest);
      // As many as there were may have had other texts, and events are told apart by their numbers.
      if (joined.length > 1 && joined.length >= deltas.length) return [...deltas, end];
      return [...joined.map((text) => ({ ...first, text })), end];
    },
  };
}

/**
 * The part of a caller's `stream_options` for the vendor, which precedes all other fields of the request, where the vendor's
 * adapter looks for it. Usage is always requested; the gateway decides who sees it.
 */
export function forwardedStreamOptions(options: Record<string, unknown> | null | undefined): {
  stream_options?: Record<string, unknown>;
} {
  const { include_usage: _, ...others } = options ?? {};
  return Object.keys(others).length === 0 ? {} : { stream_options: { include_usage: true, ...others } };
}
