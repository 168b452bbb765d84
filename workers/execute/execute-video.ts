import { setTimeout as delay } from 'node:timers/promises';
import { type VideoEnd, type VideoFile, type VideoVariant, videoVariants } from '../../shared/capabilities/video.ts';
import { ApiError } from '../../shared/errors.ts';
import type { VendorTask } from '../../shared/jobs/vendor-task.ts';
import { NoFileError } from '../vendors/support/refuse-text.ts';
import { unknownOutcome } from '../vendors/support/vendor-task-calls.ts';
import type { TaskCall, TaskState, Vendor, VendorAnswer, VideoTasks } from '../vendors/vendor.ts';
import { type ExecuteTask, notOffered, type Pause } from './execution.ts';

/** Delay of a new task's first poll. */
const firstPollMs = 1000;
/** The pause between two polls of a task, by its age: short tasks are noticed quickly. */
const pauses = [
  { youngerThanMs: 20_000, pauseMs: 2000 },
  { youngerThanMs: 60_000, pauseMs: 5000 },
  { youngerThanMs: Number.POSITIVE_INFINITY, pauseMs: 10_000 },
];
/** Limit on a vendor's Retry-After: a job that ended meanwhile must be noticed while its state exists. */
const maxPauseMs = 60_000;
/** Jobs that began together are spread by up to this share of their pause. */
const spread = 0.25;

/** Timeout of one poll, and of one file: neither may occupy a worker's slot for good. */
const pollMs = 30_000;
const hurriedPollMs = 2000;
const fetchMs = 300_000;
/** The same for a preview, which is tried once: it must not hold up the film, which is there. */
const previewMs = 30_000;
/** Tries to fetch a file per claim, and the wait between them, which grows. */
const fetches = 3;
const fetchPauseMs = 500;

/** Maximum length of a vendor's name for a task: it is kept in Redis and in the answer, and becomes part of paths. */
const maxTaskName = 1000;

/** How long a creation may continue after its job was stopped: once its name is known, the task can be discarded. */
const lingerMs = 4000;

/** A call about a video whose task is known. */
export type VideoCall = Omit<TaskCall, 'task'>;

/** A task that an earlier claim of its job created. */
export interface KnownTask {
  readonly known: VendorTask;
  /** Whether it is polled with the key that created it: another key may be of an account that does not know the task. */
  readonly hasOwnKey: boolean;
  /** Its known progress, in percent. */
  readonly progress: number;
  /** How long the files of its answer stay, in ms. */
  readonly filesStayMs: number;
  /** The length that is charged, from the one that the vendor reports, if any. */
  readonly seconds: (made: string | undefined) => Promise<number | undefined>;
  /** Whether its files may be fetched now, which takes minutes where they come slowly; if not, at a later poll. Asked once. */
  readonly mayFetch: () => boolean;
  /** Whether its poll has hardly any time: it is in the way of others. */
  readonly isHurried: boolean;
}

/**
 * Makes a video, one step per claim of its job: the first creates the vendor's task, once, the others poll it, and the last
 * stores its files. Failures while a task runs are retried until the job's deadline: the video is being charged.
 */
export const executeVideo: ExecuteTask = async ({ vendor, call, rememberTask }) => {
  const video = tasksOf(vendor);
  if (call.signal.aborted) throw new ApiError('cancelled', 'The request was cancelled.');
  const { signal, release } = lingering(call.signal);
  try {
    const name = await video.create({ ...call, signal });
    if (name.length > maxTaskName) {
      throw unknownOutcome("The model's vendor began the video, but calls it by a name that is too long to be kept.");
    }
    await rememberTask(name);
  } finally {
    release();
  }
  return { progress: 0, pauseMs: jittered(firstPollMs) };
};

function tasksOf(vendor: Vendor): VideoTasks {
  if (vendor.video === undefined) throw notOffered(vendor, 'video');
  return vendor.video;
}

/** A signal that is aborted `lingerMs` after another one. */
function lingering(signal: AbortSignal): { signal: AbortSignal; release: () => void } {
  const controller = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const onAbort = (): void => {
    timer = setTimeout(() => controller.abort(signal.reason), lingerMs);
  };
  signal.addEventListener('abort', onAbort, { once: true });
  const release = (): void => {
    signal.removeEventListener('abort', onAbort);
    clearTimeout(timer);
  };
  return { signal: controller.signal, release };
}

/** Polls a task and acts on its state. @throws ApiError that the job ends with. */
export async function followVideo(vendor: Vendor, call: VideoCall, task: KnownTask): Promise<VendorAnswer | Pause> {
  const video = tasksOf(vendor);
  const { known } = task;
  const { model, files } = call;
  let state: TaskState;
  try {
    state = await limited(call, task.isHurried ? hurriedPollMs : pollMs, (limits) =>
      video.poll({ model, files, task: known.task, ...limits }),
    );
  } catch (thrown) {
    return pollLater(call, task, ApiError.from(thrown));
  }
  if (state.status === 'failed') throw state.error;
  if (state.status === 'running') {
    return { progress: percent(state.progress), pauseMs: jittered(pauseOf(known)) };
  }
  if (!task.mayFetch()) return { progress: task.progress, pauseMs: jittered(pauseOf(known)) };
  try {
    const stored = await fetchFiles(video, call, known.task);
    const seconds = await task.seconds(state.seconds);
    return {
      ...{ body: JSON.stringify(endOf(known, state, stored, task.filesStayMs)), usage: null },
      ...(seconds !== undefined && { quantities: { seconds } }),
    };
  } catch (thrown) {
    return pollLater(call, task, ApiError.from(thrown));
  }
}

function endOf(
  { vendor, account, task }: VendorTask,
  { size, seconds }: TaskState & { status: 'completed' },
  files: VideoEnd['files'],
  filesStayMs: number,
): VideoEnd {
  const completedAt = Math.floor(Date.now() / 1000);
  const expiresAt = completedAt + Math.floor(filesStayMs / 1000);
  return { vendor, account, task, completedAt, expiresAt, files, ...(size && { size }), ...(seconds && { seconds }) };
}

/**
 * Runs work with a signal that ends it after `ms` and a silence of at most `ms`, however its vendor behaves. Not
 * `AbortSignal.any` with `AbortSignal.timeout`: nothing keeps a reference to those two, and a timeout that is garbage-collected
 * never fires.
 */
async function limited<T>(
  { signal, silenceMs }: VideoCall,
  ms: number,
  work: (limits: Pick<TaskCall, 'signal' | 'silenceMs'>) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  const onAbort = (): void => controller.abort(signal.reason);
  if (signal.aborted) onAbort();
  signal.addEventListener('abort', onAbort, { once: true });
  const late = new ApiError('timeout', "The model's vendor did not answer in time.");
  const timer = setTimeout(() => controller.abort(late), ms);
  try {
    return await work({ signal: controller.signal, silenceMs: Math.min(silenceMs, ms) });
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', onAbort);
  }
}

/** Maps a failed step to a pause: most succeed at the next poll. @throws ApiError if a retry cannot help. */
function pollLater({ signal }: VideoCall, { progress, known, hasOwnKey }: KnownTask, error: ApiError): Pause {
  if (signal.aborted) throw error;
  if (error.code === 'not_found' && hasOwnKey) {
    throw new ApiError('outcome_unknown', "The model's vendor no longer has the video that it had started.");
  }
  if (error.code === 'request_too_large') throw new ApiError('server_error', error.message);
  if (error instanceof NoFileError) throw error;
  const asked = Math.min(error.retryAfterMs ?? 0, maxPauseMs);
  return { progress, pauseMs: jittered(Math.max(asked, pauseOf(known))), error };
}

function pauseOf({ beganAt }: VendorTask): number {
  const age = Date.now() - beganAt;
  return pauses.find(({ youngerThanMs }) => age < youngerThanMs)?.pauseMs ?? maxPauseMs;
}

function jittered(ms: number): number {
  return Math.round(ms * (1 + spread * Math.random()));
}

/** A vendor's progress as a whole number; `pause` keeps it from decreasing. */
function percent(progress: number): number {
  return Number.isFinite(progress) ? Math.min(100, Math.max(0, Math.floor(progress))) : 0;
}

/** Stores the files of a completed video. The film is required; a missing preview does not fail the job. */
async function fetchFiles(video: VideoTasks, call: VideoCall, task: string): Promise<VideoEnd['files']> {
  const film = await fetchFile(video, call, task, 'video');
  if (film === undefined) throw new ApiError('not_found', "The model's vendor has no file of the completed video.");
  const files: Partial<Record<VideoVariant, VideoFile>> = {};
  for (const variant of videoVariants) {
    if (variant === 'video') continue;
    const file = await fetchFile(video, call, task, variant).catch((error) => {
      if (call.signal.aborted) throw error;
      return undefined;
    });
    if (file !== undefined) files[variant] = file;
  }
  return { ...files, video: film };
}

async function fetchFile(
  video: VideoTasks,
  call: VideoCall,
  task: string,
  variant: VideoVariant,
): Promise<VideoFile | undefined> {
  const { model, files, signal } = call;
  const isPreview = variant !== 'video';
  const ms = isPreview ? previewMs : fetchMs;
  for (let round = 1; ; round++) {
    try {
      const file = await limited(call, ms, (limits) => video.fetch({ model, files, task, ...limits }, variant));
      // It may take a moment until a film can be fetched.
      if (file !== undefined || isPreview || round === fetches) return file;
    } catch (error) {
      if (isPreview || round === fetches || signal.aborted || ApiError.from(error).code === 'request_too_large')
        throw error;
    }
    await delay(fetchPauseMs * round, undefined, { signal }).catch(() => undefined);
  }
}
