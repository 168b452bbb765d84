import type { Downloader } from '../../http/download.ts';
import type { HttpClient } from '../../http/http-client.ts';
import { isObject, type JsonObject, parseObject } from '../support/json-object.ts';
import { unsupportedField } from '../support/unsupported-field.ts';
import { fetchFilm, madeVideo, readVideoRequest } from '../support/video-request.ts';
import type { TaskCall, TaskState, VideoTasks } from '../vendor.ts';
import { createGeneration, generationError, generationRequest, lumaRatio, readAssets } from './generation.ts';

/*
 * Videos at Luma (https://docs.lumalabs.ai/docs/video-generation and /docs/errors, and the types of lumaai 1.19.1, read
 * 2026-11-21), each a generation.
 *
 * | OpenAI          | Luma                                                                     |
 * |-----------------|--------------------------------------------------------------------------|
 * | prompt          | prompt                                                                   |
 * | size            | aspect_ratio and resolution, by the shorter side: `720p`, `4k` for 2160  |
 * | seconds         | duration: `5s`                                                           |
 * | input_reference | keyframes.frame0, a link; the vendor takes no embedded pictures          |
 * | remix           | refused                                                                  |
 * | user            | left out                                                                 |
 * | any other       | as it is: loop, concepts, keyframes.frame1                               |
 */

/** Videos by Luma's generations. */
export function lumaVideos(http: HttpClient, download: Downloader): Required<VideoTasks> {
  const readGeneration = async (call: TaskCall): Promise<JsonObject> =>
    parseObject(await http.get(generationRequest(call.task, call)));
  return {
    async create(call) {
      const { prompt, size, resolution, seconds, input, own } = await readVideoRequest(call);
      if (input && !/^https?:/i.test(input)) {
        throw unsupportedField('input_reference', "the model's vendor takes links to pictures only");
      }
      const frames = isObject(own.keyframes) ? own.keyframes : {};
      const fields = {
        ...own,
        model: call.model,
        prompt,
        ...(size && { aspect_ratio: lumaRatio(size), resolution: resolution === '2160p' ? '4k' : resolution }),
        ...(seconds && { duration: `${seconds}s` }),
        ...(input && { keyframes: { ...frames, frame0: { type: 'image', url: input } } }),
      };
      return await createGeneration(http, 'video', fields, call);
    },
    poll: async (call) => readState(await readGeneration(call)),
    fetch: (call, variant) =>
      fetchFilm(call, variant, download, async () => readAssets(await readGeneration(call))?.video),
    async discard(call) {
      await http.delete(generationRequest(call.task, call));
    },
  };
}

function readState(generation: JsonObject): TaskState {
  if (generation.state === 'failed') return { status: 'failed', error: generationError(generation) };
  const assets = readAssets(generation);
  return assets === undefined ? { status: 'running', progress: 0 } : madeVideo(assets.video);
}
