import type { Frame } from '../../../shared/jobs/frames.ts';
import type { View, ViewedJob } from '../../replies/view.ts';

/** What the view of a completion needs of its request. */
export interface CompletionViewOptions {
  /** The usage is asked for at the end of a stream. */
  readonly includeUsage: boolean;
}

/** How the answers of one kind of completion are dressed. */
export interface CompletionDress {
  /** Before the job's id: `chatcmpl-`. */
  readonly idPrefix: string;
  readonly object: string;
  readonly chunkObject: string;
  /** What the deltas and the end of a streamed answer say as a whole: a held body without its envelope. */
  readonly fold: (frames: readonly Frame[]) => Record<string, unknown>;
  /** A folded choice as a chunk says it; left out where that is the same. */
  readonly chunkChoice?: (choice: Record<string, unknown>) => Record<string, unknown>;
}

const json = (value: unknown): string => JSON.stringify(value);

/** Puts the envelope before a frame's fields without parsing them: a token's cost is a string copy. */
function splice(head: string, text: string): string {
  return text === '{}' ? `${head}}` : `${head},${text.slice(1)}`;
}

/**
 * The view of completions, of chats and legacy ones. Streamed: a chunk per delta. The end becomes the usage chunk, where
 * asked for, and `[DONE]`. A held answer watched as a stream is one whole object and `[DONE]`.
 */
export function completionView({
  idPrefix,
  object,
  chunkObject,
  fold,
  chunkChoice,
}: CompletionDress): View<CompletionViewOptions> {
  /** The fields that lead every object of an answer, ready to be followed by the frame's own. */
  const envelope = (job: ViewedJob, objectName: string): string => {
    const created = Math.floor(job.createdAt / 1000);
    return `{"id":"${idPrefix}${job.id}","object":"${objectName}","created":${created},"model":${json(job.model)}`;
  };
  return {
    stream: (job) => {
      const includeUsage = job.viewOptions.includeUsage;
      const chunk = envelope(job, chunkObject) + (includeUsage ? ',"usage":null' : '');
      return (frame) => {
        if (frame.type === 'delta') return [`data: ${splice(chunk, frame.text)}`];
        if (frame.type !== 'end') return [];
        const end = JSON.parse(frame.text) as { choices?: unknown; usage?: unknown };
        if (end.choices !== undefined) return [`data: ${splice(envelope(job, object), frame.text)}`, 'data: [DONE]'];
        if (!includeUsage) return ['data: [DONE]'];
        const usage = `,"choices":[],"usage":${json(end.usage ?? null)}}`;
        return [`data: ${envelope(job, chunkObject)}${usage}`, 'data: [DONE]'];
      };
    },
    held: (job, frames) => {
      const end = frames.at(-1) as Frame;
      // A held call has one frame, and its text is the body already.
      const body = frames.length === 1 ? end.text : json(fold(frames));
      return splice(envelope(job, object), body);
    },
    // The deltas joined to one, and the end as it was.
    final: (frames) => {
      const [first, ...more] = frames.filter(({ type }) => type === 'delta');
      const end = frames.at(-1) as Frame;
      if (first === undefined) return [end];
      const { choices, ...rest } = fold([first, ...more]) as { choices: Record<string, unknown>[] };
      return [{ ...first, text: json({ choices: chunkChoice ? choices.map(chunkChoice) : choices, ...rest }) }, end];
    },
  };
}
