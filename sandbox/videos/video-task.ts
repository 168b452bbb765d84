import type { VideoRecord } from '../journal.ts';
import type { FaultOptions } from '../request-options.ts';
import { nextRequestId } from '../response.ts';
import type { Clip } from './draw-video.ts';
import type { LaterFault } from './video-options.ts';
import type { VideoRequest } from './video-request.ts';

type VideoStatus = 'queued' | 'in_progress' | 'completed' | 'failed';

const DAY_SECONDS = 86_400;

/** A video from its creation on. It has no timer: its progress follows from the elapsed time. */
export class VideoTask {
  readonly id = `video_${nextRequestId()}`;
  readonly request: VideoRequest;
  /** Its record in the journal. */
  readonly record: VideoRecord = { id: this.id, polls: 0, downloads: 0 };
  readonly #createdAt = Date.now();
  /** Setting the clock back must not set the video back. */
  readonly #started = performance.now();
  #answersInProgress = 0;

  constructor(request: VideoRequest) {
    this.request = request;
  }

  get status(): VideoStatus {
    const { durationMilliseconds, queuedMilliseconds, failure } = this.request.video;
    const elapsed = performance.now() - this.#started;
    if (elapsed >= durationMilliseconds) return failure === undefined ? 'completed' : 'failed';
    return elapsed < queuedMilliseconds ? 'queued' : 'in_progress';
  }

  get isFinished(): boolean {
    return this.status === 'completed' || this.status === 'failed';
  }

  /** Counts a poll, and returns the fault of this call. */
  poll(): FaultOptions | undefined {
    this.record.polls += 1;
    return faultOf(this.request.video.pollFault, this.record.polls);
  }

  /** Counts a download, and returns the fault of this call. */
  download(): FaultOptions | undefined {
    this.record.downloads += 1;
    return faultOf(this.request.video.contentFault, this.record.downloads);
  }

  /** The video as a poll shows it: the requested steps of progress come first, one per response. */
  toPolledResource(): object {
    const resource = this.toResource();
    if (resource.status !== 'in_progress') return resource;
    const step = this.request.video.progress[this.#answersInProgress];
    this.#answersInProgress += 1;
    return { ...resource, progress: step ?? resource.progress };
  }

  /** The video in OpenAI's format (https://platform.openai.com/docs/api-reference/videos/object). */
  toResource() {
    const { model, prompt, size, seconds, remixedFrom, video } = this.request;
    const status = this.status;
    const ended = Math.floor((this.#createdAt + video.durationMilliseconds) / 1000);
    const isCompleted = status === 'completed';
    return {
      id: this.id,
      object: 'video',
      created_at: Math.floor(this.#createdAt / 1000),
      status,
      completed_at: isCompleted ? ended : null,
      expires_at: isCompleted ? ended + DAY_SECONDS : null,
      error: status === 'failed' ? (video.failure ?? null) : null,
      model: model.id,
      progress: this.#progress(status),
      prompt,
      remixed_from_video_id: remixedFrom,
      seconds: String(seconds),
      size,
    };
  }

  toClip(): Clip {
    const { model, prompt, size, seconds, reference, remixedFrom } = this.request;
    const [width, height] = size.split('x').map(Number) as [number, number];
    return {
      ...{ model: model.id, prompt, width, height, seconds, isRemix: remixedFrom !== null },
      reference: reference && {
        label: `${reference.header.format} ${size} ${reference.bytes}B ${reference.sha256.slice(0, 8)}`,
        sha256: reference.sha256,
      },
    };
  }

  #progress(status: VideoStatus): number {
    if (status === 'queued') return 0;
    if (status === 'completed') return 100;
    const { durationMilliseconds, queuedMilliseconds } = this.request.video;
    const worked = performance.now() - this.#started - queuedMilliseconds;
    // 100 is reserved for completed videos; a failed one failed in the last steps.
    return Math.min(99, Math.floor((100 * worked) / (durationMilliseconds - queuedMilliseconds)));
  }
}

/**
 * The fault of a call, if any.
 * @param call number of the call, from 1.
 */
function faultOf(later: LaterFault | undefined, call: number): FaultOptions | undefined {
  if (later === undefined || call <= later.after) return undefined;
  return call <= later.after + (later.times ?? Number.POSITIVE_INFINITY) ? later.fault : undefined;
}
