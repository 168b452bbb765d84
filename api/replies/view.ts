import { unlessMissing } from '../../shared/blobs/blob-storage.ts';
import type { AccountBlobs, Blobs } from '../../shared/blobs/blobs.ts';
import type { Config } from '../../shared/config/config.ts';
import type { ApiError } from '../../shared/errors.ts';
import type { Frame } from '../../shared/jobs/append.ts';
import type { JobIdentity, JobState } from '../../shared/jobs/job-state.ts';
import { inlineLimit } from '../../shared/queue/queue.ts';
import type { BodyShare } from '../bounds/body-shares.ts';
import type { ResultLinks } from '../results/result-links.ts';
import { expired } from './unreadable-answer.ts';

/** States of a job as shown to callers. */
export type JobStatus = 'queued' | 'in_progress' | 'completed' | 'failed' | 'cancelled';

/** A job's status as shown to callers. */
export function jobStatus({ outcome, attempt }: Pick<JobState, 'outcome' | 'attempt'>): JobStatus {
  return outcome ?? (attempt > 0 ? 'in_progress' : 'queued');
}

/** A view's data about the job whose frames it shows. */
export interface ViewedJob<ViewOptions extends object = object> {
  readonly id: string;
  readonly model: string;
  /** Milliseconds since 1970. */
  readonly createdAt: number;
  /** As returned by `parse`. */
  readonly viewOptions: ViewOptions;
  /** Whether its reader made a streamed request. Its frames may be those of a held answer all the same: a cached one. */
  readonly stream?: boolean;
  /** Makes a temporary public link to a result file (by the id of its blob). */
  readonly link: (file: string) => string;
}

/**
 * How an endpoint shows the frames of a job. Pure: the same frames from the first on always make the same events, so that a
 * resumed stream continues with exactly the missing events.
 */
export interface View<ViewOptions extends object = object> {
  /** Creates a fold over the job's frames: for each frame its SSE events, each without its `id:` line and end. */
  stream(job: ViewedJob<ViewOptions>): (frame: Frame) => string[];
  /** The body of a held answer, from all frames of a completed job. */
  held(job: ViewedJob<ViewOptions>, frames: readonly Frame[]): string;
  /**
   * How that body begins if otherwise it is the end frame as it lies in its file, which then is not decoded; undefined if it must be.
   * Asked only where `held` would get no other frame.
   * @param end bytes of the end frame, the first ones at least
   */
  heldStart?(job: ViewedJob<ViewOptions>, end: Buffer): HeldStart | undefined;
  /** Whether `held` needs the end frame only: then no other is kept for it. */
  readonly heldFromEnd?: boolean;
  /**
   * The fewest frames, the end last, from which `stream` and `held` show a completed answer as a whole: the database stores
   * these (their `seq` is ignored). By default all frames except progress are kept. If the view shows errors, it is also
   * called for failed answers.
   */
  final?(frames: readonly Frame[], job: Pick<ViewedJob<ViewOptions>, 'id' | 'viewOptions'>): readonly Frame[];
  /**
   * How many of the last frames have, where `final` has joined others, the events of the original ones with their numbers, under the
   * same indices: a stream that was received up to these is resumed there. None by default: then it is repeated as a whole only.
   */
  readonly exactFrames?: number;
  /** Content-Type of a held answer; JSON by default. */
  contentType?(job: ViewedJob<ViewOptions>): string | undefined;
  /** The answer as bytes, for the request that makes the job, if it has that form. All other requests get its events or its held body. */
  bytes?(job: Pick<ViewedJob<ViewOptions>, 'viewOptions'>): BytesView | undefined;
  /**
   * Whether `resource` and the fold of `stream` also show `error` frames (an error before the first event of a stream is
   * always a status). By default `errorEvent` shows them.
   */
  readonly showsErrors?: boolean;
  /**
   * The error event once the status is sent; by default OpenAI's `data: {"error":…}`.
   * @param sequence number of the fold's events before it
   */
  errorEvent?(error: ApiError, sequence: number): string;
  /**
   * Whether a stream opens before the job's first frame: then the fold first gets `openingFrame`, and every error is an
   * event. Never by default.
   */
  opensAtOnce?(job: ViewedJob<ViewOptions>): boolean;
  /** The keep-alive of a silent stream; by default the comment `: ping`. */
  readonly ping?: string;
  /** Shows the job as a resource; missing if it is none. */
  resource?(job: ViewedJob<ViewOptions>, state: ResourceState): Record<string, unknown>;
}

/** The beginning of a body that is otherwise made already. */
export interface HeldStart {
  readonly text: string;
  /** The first bytes that it stands for. */
  readonly replaces: number;
}

/** The state of a job that is a resource (a response, a video). Times are milliseconds since 1970. */
export interface ResourceState {
  readonly status: JobStatus;
  /** Percent, a whole number. */
  readonly progress: number;
  readonly endedAt: number | undefined;
  /** The error of a failed job. */
  readonly error: ApiError | undefined;
  /** Its frames, the end last; set once it has completed, and if the view shows errors, once it has failed. */
  readonly frames: readonly Frame[] | undefined;
}

/** An answer of bytes. */
export interface BytesView {
  readonly contentType: string;
  /** The bytes of a frame. */
  readonly chunk: (frame: Frame) => Buffer | undefined;
  /** Id of the stored file in the `end` frame: the whole answer, for when no other frame is left. */
  readonly file: (end: Frame) => string | undefined;
}

/** Dependencies of `viewJob`. */
export interface ViewJobDependencies {
  readonly blobs: Blobs;
  readonly resultLinks: ResultLinks;
  readonly config: Config;
}

/**
 * The job as seen by its view. Links last as long as results, counted from the job's creation.
 * @param baseUrl of the request that gets the answer
 * @param share counts large view options, for a request that may read them again and again
 * @throws ApiError 410 when data for the view has expired; 429 if there is no room for it.
 */
export async function viewJob(
  { blobs, resultLinks, config }: ViewJobDependencies,
  job: JobIdentity,
  baseUrl: string,
  share?: Pick<BodyShare, 'grow'>,
): Promise<ViewedJob> {
  const { viewOptions: packed } = job;
  const isInBlob = viewOptionsBlob(packed) !== undefined;
  if (!isInBlob && packed.length > inlineLimit) share?.grow(packed.length);
  const viewOptions = isInBlob
    ? await unlessMissing(readViewOptions(blobs.ofRecords(job.account), packed, share))
    : packed;
  if (viewOptions === undefined) throw expired();
  return {
    id: job.id,
    model: job.model,
    createdAt: job.createdAt,
    stream: job.stream,
    viewOptions: JSON.parse(viewOptions) as object,
    link: (file) => resultLinks.link(baseUrl, { account: job.account, file }, job.createdAt + config.resultMs),
  };
}

/** How many of a stream's first events repeat its view options: those of a response do, `response.created` and `response.in_progress`. */
const repeatingEvents = 2;

/**
 * The same for a stream of the job's events. Also returns the bytes by which these repeat large view options: a client that is slow
 * to read keeps them in memory.
 */
export async function viewEvents(
  services: ViewJobDependencies,
  job: JobIdentity,
  baseUrl: string,
  share: Pick<BodyShare, 'grow'> | undefined,
): Promise<{ readonly viewed: ViewedJob; readonly repeatedBytes: number }> {
  let repeatedBytes = 0;
  const counted = share && {
    grow: (bytes: number): void => {
      share.grow(bytes);
      repeatedBytes += repeatingEvents * bytes;
    },
  };
  const viewed = await viewJob(services, job, baseUrl, counted);
  return { viewed, repeatedBytes };
}

const reference = /^\{"blob":"([^"]+)"\}$/;

/**
 * Packs view options for a job's identity: the JSON text, or over 64 KiB (such as the tools of an agent) a reference to a
 * blob with it.
 */
export async function packViewOptions(blobs: Blobs, account: string, options: object): Promise<string> {
  const text = JSON.stringify(options);
  return text.length <= inlineLimit ? text : `{"blob":"${await blobs.of(account).put(text)}"}`;
}

/**
 * Returns the JSON text of packed view options.
 * @param share counts those that are in a blob, before they are read
 * @throws MissingBlobError when they have expired.
 */
export async function readViewOptions(
  blobs: AccountBlobs,
  packed: string,
  share?: Pick<BodyShare, 'grow'>,
): Promise<string> {
  const blob = viewOptionsBlob(packed);
  if (blob === undefined) return packed;
  if (share !== undefined) share.grow(await blobs.size(blob));
  return await blobs.text(blob);
}

/** Returns the id of the blob of packed view options, if they are in one. */
export function viewOptionsBlob(packed: string): string | undefined {
  return reference.exec(packed)?.[1];
}
