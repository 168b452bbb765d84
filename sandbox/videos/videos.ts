import { Pace } from '../chat/timed-answer.ts';
import type { Exchange } from '../exchange.ts';
import { type FormRules, readForm } from '../form.ts';
import type { ImageHeader } from '../image-header.ts';
import { ImageInspector } from '../images/source-image.ts';
import { deliver, sendWhole } from '../media-answer.ts';
import { OpenCall } from '../open-call.ts';
import { RequestFields } from '../request-fields.ts';
import type { FaultOptions } from '../request-options.ts';
import { sendJson } from '../response.ts';
import { WireError } from '../wire-error.ts';
import { videoVariants } from './video-renderer.ts';
import { readFormVideo, readJsonVideo, readRemix, type VideoRequest } from './video-request.ts';
import type { VideoTask } from './video-task.ts';

const formRules: FormRules<ImageHeader | undefined> = {
  maximumFileBytes: 50 * 1024 * 1024,
  maximumFiles: 1,
  inspect: () => new ImageInspector(),
};

/** `POST /v1/videos` with a JSON body */
export function createVideo(exchange: Exchange): void {
  create(exchange, readJsonVideo(exchange.body, exchange.request.headers));
}

/** `POST /v1/videos` with a form */
export async function createVideoOfForm(exchange: Exchange): Promise<void> {
  const form = await readForm(exchange.request, formRules);
  create(exchange, readFormVideo(form, exchange.request.headers));
}

/** `POST /v1/videos/{id}/remix` */
export function remixVideo(exchange: Exchange): void {
  const source = exchange.state.videos.get(exchange.id);
  const request = readRemix(exchange.body, exchange.request.headers, source);
  if (source.status !== 'completed') {
    throw new WireError(400, 'Only a completed video can be remixed.', { param: 'video_id' });
  }
  create(exchange, request);
}

/** The video is created before its response gets any fault: a caller that receives nothing cannot know whether it exists. */
function create({ response, state }: Exchange, request: VideoRequest): void {
  const { options, testId, model } = request;
  const fault = state.faults.due(options.fault);
  const call = new OpenCall(response, state.journal, { testId, model: model.id, stream: false });
  const pace = new Pace(options.firstTokenMilliseconds, undefined);
  if (isRefusal(fault)) {
    // The refusal is written instead of this.
    deliver({ call, pace, fault }, false, () => Promise.resolve());
    return;
  }
  const task = state.videos.add(request);
  call.entry.video = task.record;
  const body = JSON.stringify(task.toResource());
  deliver({ call, pace, fault }, false, (delivery) => sendWhole(delivery, 'application/json', body, 1));
}

function isRefusal(fault: FaultOptions | undefined): boolean {
  return fault?.kind === 'error' || fault?.kind === 'rate_limit';
}

/** `GET /v1/videos/{id}` */
export function retrieveVideo(exchange: Exchange): void {
  const task = exchange.state.videos.get(exchange.id);
  const fault = task.poll();
  const delivery = { call: openLaterCall(exchange, task), pace: new Pace(0, undefined), fault };
  deliver(delivery, false, () => sendWhole(delivery, 'application/json', JSON.stringify(task.toPolledResource()), 1));
}

/** `GET /v1/videos/{id}/content` */
export function sendVideoContent(exchange: Exchange): void {
  const { id, query, state } = exchange;
  const task = state.videos.get(id);
  const fields = readQuery(query, ['variant']);
  const variant = fields.choice('variant', videoVariants) ?? 'video';
  if (task.status !== 'completed') {
    throw new WireError(404, 'Video is not ready yet, use GET /v1/videos/{video_id} to check status.');
  }
  const fault = task.download();
  // Every fault except a refusal occurs in the middle: there is a file to break.
  const midway = fault && !isRefusal(fault) ? { ...fault, afterTokens: 0 } : fault;
  const delivery = { call: openLaterCall(exchange, task), pace: new Pace(0, undefined), fault: midway };
  const type = variant === 'video' ? 'video/mp4' : 'image/webp';
  deliver(delivery, false, async () => {
    await sendWhole(delivery, type, await state.videos.renderer.render(variant, task.toClip()), 1);
  });
}

/** `DELETE /v1/videos/{id}` */
export function deleteVideo({ response, id, state }: Exchange): void {
  const task = state.videos.get(id);
  if (!task.isFinished) {
    throw new WireError(400, 'Only a completed or failed video can be deleted.', { param: 'video_id' });
  }
  state.videos.delete(task);
  sendJson(response, 200, JSON.stringify({ id, object: 'video.deleted', deleted: true }));
}

/** `GET /v1/videos` */
export function listVideos({ response, query, state }: Exchange): void {
  const fields = readQuery(query, ['limit', 'after', 'order']);
  const limit = fields.number('limit', 0, 100, 'integer') ?? 20;
  const order = fields.choice('order', ['asc', 'desc']) ?? 'desc';
  const { tasks, hasMore } = state.videos.list(order, limit, fields.text('after'));
  const data = tasks.map((task) => task.toResource());
  const [first, last] = [data[0]?.id ?? null, data.at(-1)?.id ?? null];
  sendJson(response, 200, JSON.stringify({ object: 'list', data, first_id: first, last_id: last, has_more: hasMore }));
}

function openLaterCall({ response, state }: Exchange, { request }: VideoTask): OpenCall {
  const { testId, model } = request;
  return new OpenCall(response, state.videos.laterCalls, { testId, model: model.id, stream: false });
}

/** A query contains only text, as a form does. */
function readQuery(query: URLSearchParams, names: readonly string[]): RequestFields {
  const fields = RequestFields.fromForm(new Map([...query.keys()].map((name) => [name, query.getAll(name)])));
  fields.allowOnly(names);
  return fields;
}
