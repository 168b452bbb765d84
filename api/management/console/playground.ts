import type Router from '@koa/router';
import type { Middleware } from 'koa';
import type { CallerDirectory } from '../../auth/authenticate.ts';
import { requireActiveKey } from '../../auth/authenticate.ts';
import { type FairReads, readFairly } from '../../bounds/fair-reads.ts';
import type { JobRoutesDependencies } from '../../endpoints/jobs/jobs.ts';
import { jobRoutes } from '../../endpoints/jobs/jobs.ts';
import type { ModelsDependencies } from '../../endpoints/models/models.ts';
import { listModels, retrieveModel } from '../../endpoints/models/models.ts';
import type { VideoRoutesDependencies } from '../../endpoints/videos/video-routes.ts';
import { videoRoutes } from '../../endpoints/videos/video-routes.ts';
import type { Endpoint } from '../../pipeline/endpoint.ts';
import type { HandleRequestDependencies } from '../../pipeline/handle-request.ts';
import { handleRequest } from '../../pipeline/handle-request.ts';
import type { State } from '../../state.ts';

/** Dependencies of the playground's routes. */
export interface PlaygroundDependencies
  extends JobRoutesDependencies,
    VideoRoutesDependencies,
    HandleRequestDependencies,
    ModelsDependencies {
  readonly callers: CallerDirectory;
  readonly fairReads: FairReads;
}

/**
 * `/console/api/v1/*`: the playground's API. It uses the handlers of `/v1/*`, so that admission, limits and charges apply as
 * to an API key; the caller is the session's account with its hidden key.
 * @param signedIn requires a session, and refuses requests of other sites' pages
 */
export function addPlaygroundRoutes(
  router: Router<State>,
  services: PlaygroundDependencies,
  endpoints: readonly Endpoint[],
  signedIn: Middleware<State>,
): void {
  const base = '/console/api/v1';
  const known = [signedIn, callByHiddenKey(services)];
  const active = [...known, requireActiveKey(services.callers)];
  const jobs = jobRoutes(services, new Map(endpoints.map((endpoint) => [endpoint.name, endpoint])));
  const video = videoRoutes(services);

  for (const endpoint of endpoints) {
    const path = `/console/api${endpoint.path}`;
    router.post(path, ...known, handleRequest(services, endpoint));
  }
  router.get(`${base}/models`, ...active, listModels(services));
  router.get(`${base}/models/*id`, ...active, retrieveModel(services));
  router.get(`${base}/videos`, ...active, readFairly(services), video.list);
  router.get(`${base}/videos/:id`, ...active, video.retrieve);
  router.get(`${base}/videos/:id/content`, ...active, video.content);
  router.delete(`${base}/videos/:id`, ...active, video.remove);
  router.get(`${base}/jobs/:id`, ...active, jobs.read);
  router.get(`${base}/jobs/:id/events`, ...active, jobs.events);
  router.delete(`${base}/jobs/:id`, ...active, jobs.cancel);
}

/** Makes the session's account the caller, by the key of kind `console` that is made for it on first use. */
function callByHiddenKey({ callers }: PlaygroundDependencies): Middleware<State> {
  return async (ctx, next) => {
    ctx.state.caller = await callers.consoleCallerOf(ctx.state.session.account);
    await next();
  };
}
