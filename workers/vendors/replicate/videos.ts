import type { ApiError } from '../../../shared/errors.ts';
import type { Downloader } from '../../http/download.ts';
import type { HttpClient } from '../../http/http-client.ts';
import { type JsonObject, parseObject } from '../support/json-object.ts';
import { failedVideo, fetchFilm, madeVideo, readVideoRequest } from '../support/video-request.ts';
import type { TaskState, VideoTasks } from '../vendor.ts';
import { cancelPrediction, createPrediction, getPrediction, predictionError, readOutput } from './prediction.ts';

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
export function replicateVideos(http: HttpClient, download: Downloader): Required<VideoTasks> {
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
      return (await createPrediction(http, call.model, fields, call)).id;
    },
    async poll(call) {
      return readState(parseObject(await getPrediction(http, call.task, call)));
    },
    fetch: (call, variant) =>
      fetchFilm(call, variant, download, async () =>
        linkOf(readOutput(parseObject(await getPrediction(http, call.task, call)))),
      ),
    discard: (call) => cancelPrediction(http, call.task, call),
  };
}

function readState(prediction: JsonObject): TaskState {
  if (ended.includes(prediction.status)) return { status: 'failed', error: videoError(prediction) };
  // An answer that is not a prediction is no failure of the task: it is polled again.
  const output = readOutput(prediction);
  return output === undefined ? { status: 'running', progress: 0 } : madeVideo(linkOf(output));
}

/** The model's message about its own failure is left out: it may contain any internal error. */
function videoError(prediction: JsonObject): ApiError {
  const error = predictionError(prediction);
  return error.code === 'server_error' ? failedVideo() : error;
}

function linkOf(output: unknown): unknown {
  return Array.isArray(output) ? output[0] : output;
}
