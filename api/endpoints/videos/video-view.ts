import type { VideoEnd, VideoProgress } from '../../../shared/capabilities/video.ts';
import type { ApiError } from '../../../shared/errors.ts';
import type { Frame } from '../../../shared/jobs/append.ts';
import { sseEvent } from '../../replies/sse-event.ts';
import type { ResourceState, View, ViewedJob } from '../../replies/view.ts';
import type { VideoFacts } from './parse-video.ts';

/** OpenAI's `Video`. */
interface Video {
  readonly id: string;
  readonly object: 'video';
  readonly model: string;
  readonly status: 'queued' | 'in_progress' | 'completed' | 'failed';
  /** Percent. */
  readonly progress: number;
  /** Seconds since 1970, as all times here. */
  readonly created_at: number;
  readonly completed_at: number | null;
  /** When the files expire. */
  readonly expires_at: number | null;
  readonly prompt: string;
  readonly size: string;
  readonly seconds: string;
  readonly remixed_from_video_id: string | null;
  readonly error: { readonly code: string; readonly message: string } | null;
}

function videoOf({ id, model, createdAt, viewOptions }: ViewedJob<VideoFacts>, known: Partial<Video>): Video {
  const { prompt, size = '', seconds = '', remixedFrom } = viewOptions;
  return {
    id: `video_${id}`,
    object: 'video',
    model,
    status: 'queued',
    progress: 0,
    created_at: Math.floor(createdAt / 1000),
    completed_at: null,
    expires_at: null,
    prompt,
    size,
    seconds,
    remixed_from_video_id: remixedFrom ?? null,
    error: null,
    ...known,
  };
}

/** Parses the end of a video's job. */
export function readVideoEnd(frames: readonly Frame[]): VideoEnd {
  return JSON.parse((frames.at(-1) as Frame).text) as VideoEnd;
}

function completed(job: ViewedJob<VideoFacts>, { size, seconds, completedAt, expiresAt }: VideoEnd): Video {
  return videoOf(job, {
    status: 'completed',
    progress: 100,
    completed_at: completedAt,
    expires_at: expiresAt,
    ...(size !== undefined && { size }),
    ...(seconds !== undefined && { seconds }),
  });
}

/** OpenAI has no cancelled videos: they are failed ones with that error. */
function failed(
  job: ViewedJob<VideoFacts>,
  error: ApiError,
  { progress, endedAt }: Partial<ResourceState> = {},
): Video {
  const { code, message } = error.toWire().error;
  return videoOf(job, {
    status: 'failed',
    progress: progress ?? 0,
    completed_at: endedAt === undefined ? null : Math.floor(endedAt / 1000),
    error: { code, message },
  });
}

/**
 * The view of video jobs: OpenAI's `Video` in any state. As events, which OpenAI lacks, the same object with every progress,
 * and at the end.
 */
export const videoView: View<VideoFacts> = {
  stream: (job) => (frame) => {
    if (frame.type === 'progress') {
      const { progress } = JSON.parse(frame.text) as VideoProgress;
      return [event('video.in_progress', videoOf(job, { status: 'in_progress', progress }))];
    }
    return frame.type === 'end' ? [event('video.completed', completed(job, readVideoEnd([frame])))] : [];
  },
  held: (job, frames) => JSON.stringify(completed(job, readVideoEnd(frames))),
  heldFromEnd: true,
  final: (frames) => [frames.at(-1) as Frame],
  resource: (job, state) => {
    const { status, progress, error, frames } = state;
    if (frames !== undefined) return { ...completed(job, readVideoEnd(frames)) };
    if (error !== undefined) return { ...failed(job, error, state) };
    return { ...videoOf(job, { status: status === 'queued' ? 'queued' : 'in_progress', progress }) };
  },
};

function event(name: string, video: Video): string {
  return sseEvent(name, JSON.stringify(video));
}
