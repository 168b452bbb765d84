import { Worker } from 'node:worker_threads';
import { threadFile } from '../thread-file.ts';
import type { Clip } from './draw-video.ts';

/** The downloadable files of a video. */
export const videoVariants = ['video', 'thumbnail', 'spritesheet'] as const;
export type VideoVariant = (typeof videoVariants)[number];

/** A task for the thread. */
export interface RenderTask {
  variant: VideoVariant;
  clip: Clip;
}

/** The thread's result: an MP4, or a WebP. */
export type RenderedFile = Uint8Array<ArrayBuffer>;

const MAXIMUM_FILES = 16;
const TASK_MILLISECONDS = 30_000;

/**
 * Renders the files of videos in a separate thread, started with the first of them: encoding must not block other calls. One
 * at a time; the last 16 files are kept, and a file being rendered is not rendered twice.
 */
export class VideoRenderer {
  readonly #files = new Map<string, Promise<Buffer>>();
  #queue: Promise<unknown> = Promise.resolve();
  #thread: Worker | undefined;
  #isClosed = false;

  /**
   * Renders a file, or returns the existing one.
   * @throws Error when the thread fails, takes longer than 30 seconds, or is closed.
   */
  render(variant: VideoVariant, clip: Clip): Promise<Buffer> {
    const key = JSON.stringify([variant, clip]);
    const file = this.#files.get(key) ?? this.#enqueue(key, { variant, clip });
    this.#files.delete(key);
    this.#files.set(key, file);
    for (const oldest of this.#files.keys()) {
      if (this.#files.size <= MAXIMUM_FILES) break;
      this.#files.delete(oldest);
    }
    return file;
  }

  /** Ends the thread; pending files fail. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#thread?.terminate();
  }

  #enqueue(key: string, task: RenderTask): Promise<Buffer> {
    const file = this.#queue.then(() => this.#run(task));
    this.#queue = file.catch(() => this.#files.delete(key));
    return file;
  }

  #run(task: RenderTask): Promise<Buffer> {
    if (this.#isClosed) return Promise.reject(new Error('the sandbox is closed'));
    this.#thread ??= this.#startThread();
    const thread = this.#thread;
    return new Promise((resolve, reject) => {
      const deadline = setTimeout(() => void thread.terminate(), TASK_MILLISECONDS);
      let cause = new Error('the thread that makes videos was ended');
      const settle = (): void => {
        clearTimeout(deadline);
        thread.off('message', take).off('error', note).off('exit', fail);
      };
      const take = (file: RenderedFile): void => {
        settle();
        resolve(Buffer.from(file.buffer));
      };
      const note = (error: Error): void => {
        cause = error;
      };
      const fail = (): void => {
        settle();
        reject(cause);
      };
      thread.on('message', take).on('error', note).on('exit', fail).postMessage(task);
    });
  }

  #startThread(): Worker {
    const thread = new Worker(threadFile('./video-thread', import.meta.url), { execArgv: [] });
    thread.on('exit', () => {
      this.#thread = undefined;
    });
    thread.unref();
    return thread;
  }
}
