import type { ApiError } from '../../../shared/errors.ts';
import type { Downloader } from '../../http/download.ts';
import { type JsonObject, parseObject } from '../support/json-object.ts';
import { failedVideo, fetchFilm, madeVideo, readVideoRequest } from '../support/video-request.ts';
import type { TaskState, VideoTasks } from '../vendor.ts';
import {
  cancelPrediction,
  createPrediction,
  getPrediction,
  predictionError,
  type ReplicateApi,
  readOutput,
} from './prediction.ts';

/*
 * Videos at Replicate (https://replicate.com/docs/reference/http and the models' own schemas, such as
 * https://replicate.com/google/veo-3-fast/api/schema, read 2026-11-21).
 *
 * | OpenAI          | Replicate (`input`)                                                   |
 * |-----------------|-----------------------------------------------------------------------|
 * | prompt          | prompt                                                                |
 * | size            | aspect_ratio and resolution (`720p`, by the shorter side)             |
 * | seconds         | duration, a number                                                    |
 * | input_reference | image (a link or a data URL)                                          |
 * | remix           | refused                                                               |
 * | user            | left out                                                              |
 * | any other       | as it is: seed, negative_prompt                                       |
 */

/** Statuses of failed predictions. */
const ended: readonly unknown[] = ['failed', 'canceled', 'aborted'];

/** Videos at Replicate, each a prediction. */
export function replicateVideos(api: ReplicateApi, download: Downloader): Required<VideoTasks> {
  const { http, secret } = api;
  return {
    async create(call) {
      const { prompt, aspectRatio, resolution, seconds, input, own } = await readVideoRequest(call);
      const fields = {
        ...own,
        prompt,
        ...(aspectRatio && { aspect_ratio: aspectRatio, resolution }),
        ...(seconds && { duration: Number(seconds) }),
        ...(input && { image: input }),
      };
      return (await createPrediction(api, call.model, fields, call)).id;
    },
    async poll(call) {
      return readState(parseObject(await getPrediction(http, call.task, call)), secret);
    },
    fetch: (call, variant) =>
      fetchFilm(call, variant, download, async () =>
        linkOf(readOutput(parseObject(await getPrediction(http, call.task, call)), secret)),
      ),
    discard: (call) => cancelPrediction(http, call.task, call),
  };
}

function readState(prediction: JsonObject, secret: string): TaskState {
  if (ended.includes(prediction.status)) return { status: 'failed', error: videoError(prediction, secret) };
  // An answer that is not a prediction is no failure of the task: it is polled again.
  const output = readOutput(prediction, secret);
  return output === undefined ? { status: 'running', progress: 0 } : madeVideo(linkOf(output));
}

/** The model's message about its own failure is left out: it may contain any internal error. */
function videoError(prediction: JsonObject, secret: string): ApiError {
  const error = predictionError(prediction, secret);
  return error.code === 'server_error' ? failedVideo() : error;
}

function linkOf(output: unknown): unknown {
  return Array.isArray(output) ? output[0] : output;
}
