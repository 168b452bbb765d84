import { isPassing } from '../../../api/query-client.ts';
import { call, jobIdOf } from '../playground-call.ts';
import type { Work } from './task-session.ts';

/** A picture that was made. */
export interface MadeImage {
  /** A data URL. */
  readonly url: string;
  readonly type: string;
}

/** Sound that was made; `url` is a blob's. */
export interface MadeSpeech {
  readonly url: string;
  readonly type: string;
  readonly bytes: number;
  readonly format: string;
}

/** A generated video, by its id: `video_…`. */
export interface MadeVideo {
  readonly id: string;
  readonly url: string;
  readonly seconds: string;
  readonly size: string;
}

export interface Transcript {
  readonly text: string;
  readonly language?: string;
  /** Seconds. */
  readonly duration?: number;
  readonly segments?: readonly { readonly start: number; readonly end: number; readonly text: string }[];
}

/** `POST /v1/images/generations`, pictures in base64. */
export function makeImages(body: Readonly<Record<string, unknown>>): Work<readonly MadeImage[]> {
  return async (report, signal) => {
    const response = await call('/v1/images/generations', { json: body, signal });
    report({ jobId: jobIdOf(response) });
    const { data, output_format: format = 'png' } = (await response.json()) as {
      data: { b64_json?: string; url?: string }[];
      output_format?: string;
    };
    const type = `image/${format}`;
    return data.map(({ b64_json: base64, url }) => ({
      url: base64 === undefined ? (url ?? '') : `data:${type};base64,${base64}`,
      type,
    }));
  };
}

/** `POST /v1/audio/speech`. */
export function makeSpeech(body: Readonly<Record<string, unknown>>, format: string): Work<MadeSpeech> {
  return async (report, signal) => {
    const response = await call('/v1/audio/speech', { json: body, signal });
    report({ jobId: jobIdOf(response) });
    const blob = await response.blob();
    return { url: URL.createObjectURL(blob), type: blob.type, bytes: blob.size, format };
  };
}

/** `POST /v1/audio/transcriptions`. */
export function transcribe(file: File, fields: Readonly<Record<string, unknown>>): Work<Transcript> {
  return async (report, signal) => {
    const form = new FormData();
    for (const [name, value] of Object.entries(fields)) {
      if (Array.isArray(value)) for (const item of value) form.append(`${name}[]`, String(item));
      else form.append(name, String(value));
    }
    form.append('file', file);
    const response = await call('/v1/audio/transcriptions', { form, signal });
    report({ jobId: jobIdOf(response) });
    return (await response.json()) as Transcript;
  };
}

interface WireVideo {
  readonly id: string;
  readonly status: 'queued' | 'in_progress' | 'completed' | 'failed';
  readonly progress: number;
  readonly size: string;
  readonly seconds: string;
  readonly error: { readonly message: string } | null;
}

/** Polling interval of a video, in ms, and how often in a row it may fail: its vendor goes on, and it is paid for. */
const lookEveryMs = 1000;
const maxFailures = 120;

/** `POST /v1/videos`, then polls its state until it has ended. Leaving deletes it, so that no unwanted video is made. */
export function makeVideo(body: Readonly<Record<string, unknown>>): Work<MadeVideo> {
  return async (report, signal) => {
    const created = await call('/v1/videos', { json: body, signal });
    report({ jobId: jobIdOf(created) });
    let video = (await created.json()) as WireVideo;
    const path = `/v1/videos/${video.id}`;
    try {
      while (video.status === 'queued' || video.status === 'in_progress') {
        report({ progress: video.progress / 100 });
        video = await lookAgain(path, signal);
      }
    } catch (error) {
      if (signal.aborted) await call(path, { method: 'DELETE' }).catch(() => {});
      throw error;
    }
    if (video.status === 'failed') throw new Error(video.error?.message ?? 'The video failed.');
    return { id: video.id, url: `/console/api${path}/content`, seconds: video.seconds, size: video.size };
  };
}

/** The state of a video, a moment later. A gateway that is away for a while is asked again. */
async function lookAgain(path: string, signal: AbortSignal): Promise<WireVideo> {
  for (let failures = 1; ; failures += 1) {
    await pause(lookEveryMs, signal);
    try {
      return (await (await call(path, { signal })).json()) as WireVideo;
    } catch (error) {
      if (signal.aborted || !isPassing(error) || failures === maxFailures) throw error;
    }
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer);
      reject(new DOMException('Stopped.', 'AbortError'));
    };
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', stop);
      resolve();
    }, ms);
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true });
  });
}
