import { ApiError } from '../../../shared/errors.ts';
import type { Downloader } from '../../http/download.ts';
import type { HttpClient } from '../../http/http-client.ts';
import { isObject, type JsonObject, parseObject } from '../support/json-object.ts';
import { unsupportedField } from '../support/unsupported-field.ts';
import { beginTask, contentRefused, unknownOutcome } from '../support/vendor-task-calls.ts';
import { fetchFilm, readVideoRequest } from '../support/video-request.ts';
import type { TaskCall, TaskState, VendorCall, VideoTasks } from '../vendor.ts';
import type { GeminiAnswerReader } from './answer-reader.ts';
import { GeminiMedia } from './media.ts';
import { modelPath } from './request.ts';

/** HTTP statuses of google.rpc.Code (https://github.com/googleapis/googleapis/blob/master/google/rpc/code.proto). */
const statuses: Readonly<Record<number, number>> = {
  3: 400,
  4: 504,
  7: 403,
  8: 429,
  9: 400,
  11: 400,
  14: 503,
  16: 401,
};

const unknownTask = "The model's vendor does not know the video.";

/** The downloaders of callers' links and of the vendor's films. */
export interface GeminiVideoDownloads {
  readonly ofCallers: Downloader;
  readonly ofFilms: Downloader;
}

/**
 * Videos by Veo (https://ai.google.dev/gemini-api/docs/video, read 2026-11-21), each a long-running operation.
 *
 * | OpenAI          | Veo                                                                        |
 * |-----------------|----------------------------------------------------------------------------|
 * | prompt          | instances[0].prompt                                                        |
 * | input_reference | instances[0].image, in base64                                              |
 * | size            | parameters.aspectRatio and parameters.resolution, by the shorter side      |
 * | seconds         | parameters.durationSeconds                                                 |
 * | remix           | refused                                                                    |
 * | user            | left out                                                                   |
 * | any other       | as it is, in parameters: negativePrompt, personGeneration; one video alone |
 */
export function geminiVideos(
  http: HttpClient,
  reader: GeminiAnswerReader,
  { ofCallers, ofFilms }: GeminiVideoDownloads,
): VideoTasks {
  const readOperation = async ({ task, signal, silenceMs }: TaskCall): Promise<JsonObject> =>
    parseObject(await http.get({ path: `/${task}`, notFound: unknownTask, signal, silenceMs }));
  return {
    async create(call) {
      const body = JSON.stringify(await toRequest(call, ofCallers));
      const { model, signal, silenceMs } = call;
      const path = modelPath(model, 'predictLongRunning');
      const { name } = await beginTask(http, { path, body, signal, silenceMs });
      // It becomes a path, to which the key is sent.
      if (typeof name === 'string' && /^models\/\w[\w.-]*\/operations\/\w[\w-]*$/.test(name)) return name;
      throw unknownOutcome("The model's vendor began the video, but did not say what it is called.");
    },
    poll: async (call) => readState(await readOperation(call), reader),
    fetch: (call, variant) =>
      fetchFilm(call, variant, ofFilms, async () => linkOf(samplesOf(await readOperation(call)))),
  };
}

async function toRequest(call: VendorCall, download: Downloader): Promise<JsonObject> {
  const { prompt, aspectRatio, resolution, seconds, input, own } = await readVideoRequest(call);
  if ((own.sampleCount ?? 1) !== 1) throw unsupportedField('sampleCount', 'there is one video to a request');
  return {
    instances: [{ prompt, ...(input && { image: await toImage(input, new GeminiMedia(call, download)) }) }],
    parameters: { ...own, aspectRatio, resolution, ...(seconds && { durationSeconds: Number(seconds) }) },
  };
}

async function toImage(link: string, media: GeminiMedia): Promise<JsonObject> {
  const { inlineData } = await media.fromImageUrl(link, 'input_reference');
  const { data, mimeType } = inlineData as { data: string; mimeType: string };
  return { bytesBase64Encoded: data, mimeType };
}

function readState(operation: JsonObject, reader: GeminiAnswerReader): TaskState {
  const { done, error } = operation;
  if (done !== true) return { status: 'running', progress: 0 };
  if (isObject(error)) {
    const status = statuses[Number(error.code)] ?? 500;
    return { status: 'failed', error: reader.statusError(status, JSON.stringify({ error }), {}) };
  }
  const samples = samplesOf(operation);
  if (typeof linkOf(samples) === 'string') return { status: 'completed' };
  return { status: 'failed', error: whyNone(samples) };
}

/** The samples of a finished operation: `{generatedSamples: [{video: {uri}}]}`, or why there are none. */
function samplesOf({ response }: JsonObject): JsonObject {
  const { generateVideoResponse: samples } = isObject(response) ? response : {};
  return isObject(samples) ? samples : {};
}

function linkOf({ generatedSamples: samples }: JsonObject): unknown {
  const [sample]: unknown[] = Array.isArray(samples) ? samples : [];
  return isObject(sample) && isObject(sample.video) ? sample.video.uri : undefined;
}

function whyNone({ raiMediaFilteredReasons: reasons, raiMediaFilteredCount: count }: JsonObject): ApiError {
  const [reason]: unknown[] = Array.isArray(reasons) ? reasons : [];
  if (typeof reason === 'string') return contentRefused(reason.slice(0, 4000));
  if (typeof count === 'number' && count > 0) return contentRefused();
  return new ApiError('server_error', "The model's vendor answered without a video.");
}
