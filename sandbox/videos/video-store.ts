import { Journal } from '../journal.ts';
import { invalidParameter, WireError } from '../wire-error.ts';
import { VideoRenderer } from './video-renderer.ts';
import type { VideoRequest } from './video-request.ts';
import { VideoTask } from './video-task.ts';

const MAXIMUM_VIDEOS = 10_000;
/** Prompts make up most of a video's memory. */
const MAXIMUM_CHARACTERS = 64 * 1024 * 1024;

/** The videos of one sandbox: the last 10,000; the oldest ended ones are evicted. */
export class VideoStore {
  readonly renderer = new VideoRenderer();
  /** Calls about videos are as many as polls: in the main journal they would displace the creations. */
  readonly laterCalls = new Journal(false);
  readonly #tasks = new Map<string, VideoTask>();
  #characters = 0;

  /**
   * Adds a video.
   * @throws WireError 429 when no older video has ended.
   */
  add(request: VideoRequest): VideoTask {
    this.#makeRoom(request.prompt.length);
    const task = new VideoTask(request);
    this.#tasks.set(task.id, task);
    this.#characters += request.prompt.length;
    return task;
  }

  /**
   * Returns a video.
   * @throws WireError 404
   */
  get(id: string): VideoTask {
    const task = this.#tasks.get(id);
    if (task === undefined) {
      throw new WireError(404, `Video with id '${id.slice(0, 200)}' not found.`, {
        code: 'not_found',
        param: 'video_id',
      });
    }
    return task;
  }

  delete(task: VideoTask): void {
    if (this.#tasks.delete(task.id)) this.#characters -= task.request.prompt.length;
  }

  /**
   * A page of the videos.
   * @param after the id of the last video of the previous page.
   * @throws WireError 400 for an `after` that is not there.
   */
  list(order: 'asc' | 'desc', limit: number, after: string | undefined): { tasks: VideoTask[]; hasMore: boolean } {
    const tasks = [...this.#tasks.values()];
    if (order === 'desc') tasks.reverse();
    const last = after === undefined ? -1 : tasks.findIndex(({ id }) => id === after);
    if (after !== undefined && last < 0)
      throw invalidParameter('after', `No video has the id '${after.slice(0, 200)}'.`);
    const rest = tasks.slice(last + 1);
    return { tasks: rest.slice(0, limit), hasMore: rest.length > limit };
  }

  #makeRoom(characters: number): void {
    const isFull = () => this.#tasks.size >= MAXIMUM_VIDEOS || this.#characters + characters > MAXIMUM_CHARACTERS;
    if (!isFull()) return;
    for (const task of this.#tasks.values()) {
      if (task.isFinished) this.delete(task);
      if (!isFull()) return;
    }
    throw new WireError(429, 'Too many videos are being made. Try again later.', {
      ...{ type: 'requests', code: 'rate_limit_exceeded', headers: { 'Retry-After': '1' } },
    });
  }
}
