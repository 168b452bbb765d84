import type { Middleware } from 'koa';
import { MissingBlobError } from '../../../shared/blobs/blob-storage.ts';
import { type VideoVariant, videoVariants } from '../../../shared/capabilities/video.ts';
import { ApiError } from '../../../shared/errors.ts';
import { jobIdFromWire } from '../../../shared/ids.ts';
import type { EndJobContext } from '../../../shared/jobs/settlement/end-job.ts';
import { readMs } from '../../bounds/bounded-reads.ts';
import { pageOf, readPageQuery } from '../../http/page.ts';
import type { ResolveContext, ResolveDependencies } from '../../pipeline/endpoint.ts';
import { shownId } from '../../pipeline/missing.ts';
import { invalidParameter } from '../../pipeline/request-fields.ts';
import { readResource } from '../../pipeline/resource.ts';
import { ClientConnection, type Handover } from '../../replies/client-connection.ts';
import { missingFile, sendFile } from '../../results/result-route.ts';
import type { Context, State } from '../../state.ts';
import { cancelJob } from '../jobs/jobs.ts';
import { findVideoJob, requireVideoEnd, videoEndpoints } from './find-video.ts';
import { videoView } from './video-view.ts';

/** Dependencies of the routes of videos. */
export interface VideoRoutesDependencies extends ResolveDependencies, EndJobContext {
  readonly handover: Handover;
}

/** The routes of videos (https://platform.openai.com/docs/api-reference/videos). */
export interface VideoRoutes {
  /** `GET /v1/videos`: the caller's own, newest first. */
  readonly list: Middleware<State>;
  /** `GET /v1/videos/{id}` */
  readonly retrieve: Middleware<State>;
  /** `GET /v1/videos/{id}/content`: the file of a `variant`, or a range of it. */
  readonly content: Middleware<State>;
  /** `DELETE /v1/videos/{id}`: deletes its files; its row in the ledger stays. An unfinished one is cancelled first. */
  readonly remove: Middleware<State>;
}

/** A request about videos. */
interface Asked extends Pick<ResolveContext, 'account' | 'connection'> {
  readonly ctx: Context;
  readonly services: VideoRoutesDependencies;
}

/** The handlers of those routes. */
export function videoRoutes(services: VideoRoutesDependencies): VideoRoutes {
  const route =
    (endpoint: string, work: (asked: Asked) => Promise<void>): Middleware<State> =>
    async (ctx) => {
      ctx.state.endpoint = endpoint;
      const connection = new ClientConnection(ctx.res, services.handover);
      try {
        await work({ services, account: ctx.state.caller.account, connection, ctx });
      } finally {
        connection.close();
      }
    };
  return {
    list: route('videos.list', list),
    retrieve: route('video', retrieve),
    content: route('video.content', sendContent),
    remove: route('video.delete', remove),
  };
}

async function list(asked: Asked): Promise<void> {
  const { services, account, connection, ctx } = asked;
  const { limit, order, after } = readPageQuery(ctx.query, { usual: 20, most: 100, least: 0 });
  const afterId = after === undefined ? undefined : jobIdFromWire(after);
  if (after !== undefined && afterId === undefined)
    throw invalidParameter('after', `Invalid 'after': '${shownId(after)}' is no id.`);
  const page = { account, endpoints: videoEndpoints, limit: limit + 1, order, after: afterId };
  const jobs = await connection.wait(services.storedJobs.list(page), readMs);
  const videos: Record<string, unknown>[] = [];
  for (const job of jobs.slice(0, limit)) {
    try {
      videos.push(await readResource(asked, videoView, job));
    } catch (error) {
      // Deleted or expired since it was listed.
      if (ApiError.from(error).code !== 'resume_expired') throw error;
    }
  }
  ctx.body = { ...pageOf(videos, limit), has_more: jobs.length > limit };
}

async function retrieve(asked: Asked): Promise<void> {
  const { ctx } = asked;
  const job = await findVideoJob(asked, ctx.params.id);
  ctx.body = await readResource(asked, videoView, job);
}

async function sendContent(asked: Asked): Promise<void> {
  const { services, ctx } = asked;
  const variant = readVariant(ctx);
  const job = await findVideoJob(asked, ctx.params.id);
  const { files, expiresAt } = await requireVideoEnd(asked, job, 'downloaded');
  const stored = files[variant];
  if (stored === undefined) throw new ApiError('not_found', `This video has no ${variant}.`);
  try {
    await sendFile(ctx, services.blobs.ofRecords(job.account), stored.file, expiresAt);
  } catch (error) {
    throw error instanceof MissingBlobError ? missingFile(ctx) : error;
  }
}

function readVariant({ query }: Context): VideoVariant {
  const { variant = 'video' } = query;
  const known = videoVariants.find((name) => name === variant);
  if (known !== undefined) return known;
  const names = videoVariants.map((name) => `'${name}'`).join(', ');
  throw invalidParameter('variant', `Invalid value for 'variant'. Supported values are: ${names}.`);
}

async function remove(asked: Asked): Promise<void> {
  const { services, connection, ctx } = asked;
  let job = await findVideoJob(asked, ctx.params.id);
  if (job.outcome === undefined) job = await cancelJob(services, job, connection, 'The video was deleted.');
  const files = job.outcome === 'completed' ? Object.values((await requireVideoEnd(asked, job, 'deleted')).files) : [];
  await connection.wait(
    services.storedJobs.delete(
      job,
      files.map(({ file }) => file),
    ),
    readMs,
  );
  ctx.body = { id: `video_${job.id}`, object: 'video.deleted', deleted: true };
}
