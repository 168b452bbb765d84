import { ApiError } from '../../../shared/errors.ts';
import type { Downloader } from '../../http/download.ts';
import type { HttpHeaders } from '../../http/exchange.ts';
import type { HttpClient } from '../../http/http-client.ts';
import { isObject, type JsonObject, parseObject } from '../support/json-object.ts';
import { unsupportedField } from '../support/unsupported-field.ts';
import { beginTask, contentRefused, readTaskName } from '../support/vendor-task-calls.ts';
import { failedVideo, fetchFilm, madeVideo, readVideoRequest } from '../support/video-request.ts';
import type { TaskCall, TaskState, VideoTasks } from '../vendor.ts';

/*
 * Videos at Kling (https://app.klingai.com/global/dev/document-api/apiReference/model/textToVideo and …/imageToVideo, as
 * quoted in github.com/WHQ25/rawgenai, docs/research/kling, and github.com/inference-sh/grid, api/klingai/docs; read
 * 2026-11-21). The vendor has no way to cancel a task.
 *
 * | OpenAI          | Kling                                                                              |
 * |-----------------|------------------------------------------------------------------------------------|
 * | prompt          | prompt                                                                             |
 * | size            | mode (`std` is 720p, `pro` 1080p) and aspect_ratio; a picture has its own          |
 * | seconds         | duration: `5`                                                                      |
 * | input_reference | image (a link, or base64 without a data URL's head), and image2video for text2video |
 * | remix           | refused                                                                            |
 * | user            | left out                                                                           |
 * | any other       | as it is: negative_prompt, sound, cfg_scale, camera_control, image_tail            |
 */

/** The modes by their resolution. */
const modes = new Map([
  ['720p', 'std'],
  ['1080p', 'pro'],
]);

/** A failed task's message if it violated the platform's rules: "Failure to pass the risk control system". */
const refusals = /risk control|content (security|policy|moderation)|sensitive/i;

const unknownTask = "The model's vendor does not know the video.";

/**
 * Videos by Kling's tasks. A task is named by its kind and its id, because its path has both: `text2video/8672837…`.
 * @param toError reads an error by its body, which may come with the status 200
 */
export function klingVideos(
  http: HttpClient,
  toError: (status: number, body: string, headers: HttpHeaders) => ApiError,
  download: Downloader,
): VideoTasks {
  /** @throws ApiError for the vendor's own error. */
  const dataOf = (answer: JsonObject): JsonObject => {
    const { code, data } = answer;
    if (typeof code === 'number' && code !== 0) throw toError(200, JSON.stringify(answer), {});
    return isObject(data) ? data : {};
  };
  const readTask = async ({ task, signal, silenceMs }: TaskCall): Promise<JsonObject> =>
    dataOf(parseObject(await http.get({ path: `/videos/${task}`, notFound: unknownTask, signal, silenceMs })));
  return {
    async create(call) {
      const { prompt, aspectRatio, resolution, seconds, input, own } = await readVideoRequest(call);
      const mode = resolution && modes.get(resolution);
      if (resolution && mode === undefined) throw unsupportedField('size', 'its shorter side must be 720 or 1080');
      const { model, signal, silenceMs } = call;
      const body = JSON.stringify({
        ...own,
        model_name: model,
        prompt,
        ...(mode && { mode }),
        ...(seconds && { duration: seconds }),
        ...(input ? { image: input.replace(/^data:[^,]*,/, '') } : aspectRatio && { aspect_ratio: aspectRatio }),
      });
      const kind = input ? 'image2video' : 'text2video';
      const answer = await beginTask(http, { path: `/videos/${kind}`, body, signal, silenceMs });
      return `${kind}/${readTaskName(dataOf(answer).task_id)}`;
    },
    poll: async (call) => readState(await readTask(call)),
    fetch: (call, variant) => fetchFilm(call, variant, download, async () => linkOf(await readTask(call))),
  };
}

function readState(task: JsonObject): TaskState {
  const { task_status: status, task_status_msg: reason } = task;
  switch (status) {
    case 'submitted':
    case 'processing':
      return { status: 'running', progress: 0 };
    case 'succeed':
      return madeVideo(linkOf(task));
    case 'failed':
      return { status: 'failed', error: refusals.test(String(reason)) ? contentRefused() : failedVideo() };
    default:
      throw new ApiError('server_error', "The model's vendor answered with a video of an unknown status.");
  }
}

function linkOf({ task_result: result }: JsonObject): unknown {
  const [video]: unknown[] = isObject(result) && Array.isArray(result.videos) ? result.videos : [];
  return isObject(video) ? video.url : undefined;
}
