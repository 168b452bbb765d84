import { ApiError } from '../../../shared/errors.ts';
import type { Downloader } from '../../http/download.ts';
import type { HttpClient } from '../../http/http-client.ts';
import { type JsonObject, parseObject } from '../support/json-object.ts';
import { unsupportedField } from '../support/unsupported-field.ts';
import { beginTask, contentRefused, readTaskName } from '../support/vendor-task-calls.ts';
import { failedVideo, fetchFilm, madeVideo, readVideoRequest } from '../support/video-request.ts';
import type { TaskCall, TaskState, VideoTasks } from '../vendor.ts';

/*
 * Videos at Runway (https://docs.dev.runwayml.com/api and /errors/task-failures, and the types of @runwayml/sdk 4.20.1, read
 * 2026-11-21), each a task.
 *
 * | OpenAI          | Runway                                                                          |
 * |-----------------|---------------------------------------------------------------------------------|
 * | prompt          | promptText                                                                      |
 * | size            | ratio: `1280:720`                                                               |
 * | seconds         | duration, a number                                                              |
 * | input_reference | promptImage (an https link or a data URL), and image_to_video for text_to_video |
 * | remix           | refused                                                                         |
 * | user            | left out                                                                        |
 * | any other       | as it is: seed, audio, negativePrompt, contentModeration; outputFormat: mp4     |
 */

const unknownTask = "The model's vendor does not know the video.";

/** Videos by Runway's tasks. */
export function runwayVideos(http: HttpClient, download: Downloader): Required<VideoTasks> {
  const readTask = async (call: TaskCall): Promise<JsonObject> => parseObject(await http.get(requestOf(call)));
  return {
    async create(call) {
      const { prompt, size, seconds, input, own } = await readVideoRequest(call);
      if ((own.outputFormat ?? 'mp4') !== 'mp4') throw unsupportedField('outputFormat', 'videos are stored as mp4');
      const { model, signal, silenceMs } = call;
      const body = JSON.stringify({
        ...own,
        model,
        promptText: prompt,
        ...(size && { ratio: `${size.width}:${size.height}` }),
        ...(seconds && { duration: Number(seconds) }),
        ...(input && { promptImage: input }),
      });
      const path = input ? '/image_to_video' : '/text_to_video';
      return readTaskName((await beginTask(http, { path, body, signal, silenceMs })).id);
    },
    poll: async (call) => readState(await readTask(call)),
    fetch: (call, variant) => fetchFilm(call, variant, download, async () => linkOf(await readTask(call))),
    async discard(call) {
      await http.delete(requestOf(call));
    },
  };
}

function requestOf({ task, signal, silenceMs }: TaskCall) {
  return { path: `/tasks/${encodeURIComponent(task)}`, notFound: unknownTask, signal, silenceMs };
}

function readState(task: JsonObject): TaskState {
  const { status, progress, failureCode } = task;
  switch (status) {
    case 'PENDING':
    case 'THROTTLED':
      return { status: 'running', progress: 0 };
    case 'RUNNING':
      return { status: 'running', progress: typeof progress === 'number' ? Math.round(progress * 100) : 0 };
    case 'SUCCEEDED':
      return madeVideo(linkOf(task));
    case 'FAILED':
      return { status: 'failed', error: taskError(String(failureCode)) };
    case 'CANCELLED':
      return { status: 'failed', error: new ApiError('server_error', "The model's vendor has cancelled its work.") };
    default:
      throw new ApiError('server_error', "The model's vendor answered with a video of an unknown status.");
  }
}

/** Why a task failed: `SAFETY.INPUT.TEXT`, `INPUT_PREPROCESSING.SAFETY.TEXT`, `ASSET.INVALID`, `INTERNAL.BAD_OUTPUT.CODE01`, … */
function taskError(code: string): ApiError {
  if (/(^|\.)SAFETY(\.|$)/.test(code)) return contentRefused();
  if (!code.startsWith('ASSET.INVALID')) return failedVideo(code);
  return new ApiError('invalid_request_error', "The model's vendor cannot use the picture.", {
    param: 'input_reference',
    vendorCode: 'ASSET.INVALID',
  });
}

function linkOf({ output }: JsonObject): unknown {
  return Array.isArray(output) ? output[0] : undefined;
}
