import { ApiError } from '../../../shared/errors.ts';
import type { Downloader } from '../../http/download.ts';
import type { HttpClient } from '../../http/http-client.ts';
import { isObject, type JsonObject, parseObject } from '../support/json-object.ts';
import { fetchFilm, madeVideo, readVideoRequest } from '../support/video-request.ts';
import type { TaskState, VideoTasks } from '../vendor.ts';
import { FailedRequestError } from './errors.ts';
import { FalQueue, isCompleted, isPassing } from './queue.ts';

/*
 * Videos at fal (https://docs.fal.ai/model-apis/model-endpoints/queue, https://fal.ai/models/fal-ai/veo3/fast/llms.txt, read
 * 2026-11-21). The fields differ by model: its row lists the sizes, lengths and inputs.
 *
 * | OpenAI          | fal                                                                       |
 * |-----------------|---------------------------------------------------------------------------|
 * | prompt          | prompt                                                                    |
 * | size            | aspect_ratio and resolution (`720p`, by the shorter side)                 |
 * | seconds         | duration: `8s` with Veo, else `8`                                         |
 * | input_reference | image_url (a link or a data URL)                                          |
 * | remix           | refused                                                                   |
 * | user            | left out                                                                  |
 * | any other       | as it is: seed, negative_prompt, generate_audio                           |
 */

/** Failures of a result that are the request's own, beside `FailedRequestError`. */
const failures = new Set(['invalid_request_error', 'not_found', 'server_error']);

/** Videos by fal's queue. */
export function falVideos(http: HttpClient, download: Downloader): Required<VideoTasks> {
  const queue = new FalQueue(http);
  return {
    async create(call) {
      const { prompt, aspectRatio, resolution, seconds, input, own } = await readVideoRequest(call);
      const fields = {
        ...own,
        prompt,
        ...(aspectRatio && { aspect_ratio: aspectRatio, resolution }),
        ...(seconds && { duration: /\bveo/.test(call.model) ? `${seconds}s` : seconds }),
        ...(input && { image_url: input }),
      };
      return await queue.submit(call.model, fields, call);
    },
    async poll(call): Promise<TaskState> {
      const state = parseObject(await queue.status(call.task, call));
      if (!isCompleted(state)) return { status: 'running', progress: 0 };
      // A failed request is completed, too: its result is the error, and may be requested once more by `fetch`.
      try {
        return madeVideo(linkOf(await queue.result(call.task, call)));
      } catch (thrown) {
        const error = ApiError.from(thrown);
        const hasFailed = error instanceof FailedRequestError || (failures.has(error.code) && !isPassing(error));
        if (state.error !== undefined || hasFailed) return { status: 'failed', error };
        throw error;
      }
    },
    fetch: (call, variant) =>
      fetchFilm(call, variant, download, async () => linkOf(await queue.result(call.task, call))),
    discard: (call) => queue.cancel(call.task, call),
  };
}

function linkOf({ video }: JsonObject): unknown {
  return isObject(video) ? video.url : undefined;
}
