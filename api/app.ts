import Router from '@koa/router';
import Koa from 'koa';
import type { Database } from '../shared/database/database.ts';
import { authenticate, requireActiveKey } from './auth/authenticate.ts';
import type { BusyLoop } from './bounds/busy-loop.ts';
import { readFairly } from './bounds/fair-reads.ts';
import { readOwnKey } from './endpoints/account/own-key.ts';
import { usageByModel } from './endpoints/account/usage-by-model.ts';
import { endpoints } from './endpoints/endpoints.ts';
import { healthz, metrics, readyz } from './endpoints/health.ts';
import { jobSocket } from './endpoints/jobs/job-socket.ts';
import { jobRoutes } from './endpoints/jobs/jobs.ts';
import { listOwnJobs } from './endpoints/jobs/list-own-jobs.ts';
import { listModels, retrieveModel } from './endpoints/models/models.ts';
import { notOffered } from './endpoints/not-offered.ts';
import { responseRoutes } from './endpoints/responses/response-routes.ts';
import { responses } from './endpoints/responses/responses.ts';
import { responseSocket } from './endpoints/responses/socket/response-socket.ts';
import { videoRoutes } from './endpoints/videos/video-routes.ts';
import { allowOrigin } from './http/allow-origin.ts';
import { writeObjects } from './http/compress-json.ts';
import { cors } from './http/cors.ts';
import { errorShape, errors } from './http/errors.ts';
import { livenessPaths, readinessPaths } from './http/health-paths.ts';
import { takesOnly } from './http/read-query.ts';
import { checkHost, refuseOddRequests, requestTarget } from './http/request-address.ts';
import { accessLog, requestId } from './http/request-report.ts';
import { strictTransport } from './http/strict-transport.ts';
import { traceRequests } from './http/trace-requests.ts';
import { addAdminRoutes } from './management/admin/admin-routes.ts';
import { consoleHeaders } from './management/console/console-headers.ts';
import { addConsoleRoutes } from './management/console/console-routes.ts';
import { addPlaygroundRoutes } from './management/console/playground.ts';
import { requireSession } from './management/sign-in/require-session.ts';
import { consoleFiles } from './pages/console-files.ts';
import { showIcon, showStartPage } from './pages/show-start-page.ts';
import { handleRequest } from './pipeline/handle-request.ts';
import { hasEndpointInBase, methodNotAllowed, unknownPath } from './pipeline/missing.ts';
import { referenceRoutes } from './reference/serve-reference.ts';
import { readResult } from './results/result-route.ts';
import type { Services } from './services.ts';
import type { State } from './state.ts';

/** The HTTP application: middleware in order, and every route. */
export function createApp(services: Services, db: Database, isClosing: () => boolean): Koa<State> {
  const app = new Koa<State>();
  const router = new Router<State>();
  const known = authenticate(services.callers, services.forwarded);
  const active = requireActiveKey(services.callers);
  const fairly = readFairly(services);
  const room = requireRoom(services.busyLoop);
  const fromAllowedPage = allowOrigin(services.config.corsOrigins, services.baseUrls.origins);
  const byName = new Map(endpoints.map((endpoint) => [endpoint.name, endpoint]));
  const jobs = jobRoutes(services, byName);
  const response = responseRoutes(services, responses.view);
  const video = videoRoutes(services);
  const reference = referenceRoutes(services);

  router.get('/', showStartPage(services));
  router.get('/favicon.ico', showIcon);
  router.get('/docs', reference.page);
  router.get('/openapi.json', reference.openapi);
  router.get('/llms.txt', reference.llms);
  for (const path of livenessPaths) router.get(path, healthz);
  for (const path of readinessPaths) router.get(path, readyz(services, isClosing));
  router.get('/metrics', metrics(services));
  router.get('/results/:hour/:name', readResult(services));

  for (const endpoint of endpoints) {
    const { path } = endpoint;
    const named = nameEndpoint(endpoint.name);
    // Paths with parameters look up jobs before admission, which checks the key of other requests.
    if (path.includes(':')) router.post(path, room, named, known, active, handleRequest(services, endpoint));
    else router.post(path, room, named, known, handleRequest(services, endpoint));
  }

  router.get('/v1/models', known, active, listModels(services));
  router.get('/v1/models/*id', known, active, retrieveModel(services));
  router.get('/v1/responses', fromAllowedPage, known, active, responseSocket(services, responses));
  router.get('/v1/responses/:id', known, active, response.retrieve);
  router.delete('/v1/responses/:id', known, active, response.remove);
  router.post('/v1/responses/:id/cancel', known, active, response.cancel);
  router.get('/v1/responses/:id/input_items', known, active, response.inputItems);
  router.get('/v1/videos', known, active, fairly, video.list);
  router.get('/v1/videos/:id', known, active, video.retrieve);
  router.get('/v1/videos/:id/content', known, active, video.content);
  router.delete('/v1/videos/:id', known, active, video.remove);
  router.get('/v1/key', known, active, fairly, readOwnKey(services, db));
  const ofUsage = takesOnly('start_time', 'end_time', 'bucket_width');
  router.get('/v1/usage', known, active, ofUsage, fairly, usageByModel(services, db));
  const ofJobs = takesOnly('limit', 'order', 'after', 'status', 'model');
  router.get('/v1/jobs', known, active, ofJobs, fairly, listOwnJobs(services, db));
  router.get('/v1/jobs/:id', known, active, jobs.read);
  router.get('/v1/jobs/:id/events', known, active, jobs.events);
  router.get('/v1/jobs/:id/ws', fromAllowedPage, known, active, jobSocket(services, byName));
  router.delete('/v1/jobs/:id', known, active, jobs.cancel);

  addConsoleRoutes(router, services, db, byName);
  addPlaygroundRoutes(router, services, endpoints, requireSession(services));
  addAdminRoutes(router, services, db);

  const paths = plainPaths(router);
  app.use(requestTarget);
  app.use(requestId);
  app.use(accessLog(services.log, services.metrics));
  if (services.tracer !== undefined) app.use(traceRequests(services.tracer));
  if (services.config.corsOrigins.length > 0) app.use(cors(services.config.corsOrigins));
  app.use(errorShape(endpoints));
  app.use(errors(services));
  app.use(refuseOddRequests);
  const host = checkHost(services);
  if (host !== undefined) app.use(host);
  app.use(exactPosts(router));
  // For browsers, which do not use the busiest paths.
  app.use(strictTransport(services));
  app.use(consoleHeaders);
  app.use(refuseUnknownPaths(services, paths));
  app.use(consoleFiles());
  app.use(writeObjects(services));
  app.use(notOffered(paths));
  app.use(router.routes());
  // Lists the methods of a path in Allow.
  app.use(router.allowedMethods());
  return app;
}

/**
 * Routes of the API with a constant path, by that path: they precede the router, and the middleware for browsers. The router
 * matches the pattern of every route in sequence, which costs as much as the rest of the way to the endpoint (benchmark case
 * `held`). Other spellings (such as a trailing slash) are left to the router.
 */
function exactPosts(router: Router<State>): Koa.Middleware<State> {
  const byPath = new Map<string, Koa.Middleware<State>>();
  for (const { path, methods, stack } of router.stack) {
    if (typeof path !== 'string' || !path.startsWith('/v1/') || path.includes(':') || !methods.includes('POST'))
      continue;
    byPath.set(path, inOrder(stack as Koa.Middleware<State>[]));
  }
  return (ctx, next) => {
    const route = ctx.method === 'POST' ? byPath.get(ctx.path) : undefined;
    return route === undefined ? next() : route(ctx, next);
  };
}

/** Refuses a share of requests while this process has too much to do. @throws ApiError 503 */
function requireRoom(loop: Pick<BusyLoop, 'refusedPercent' | 'assertRoom'>): Koa.Middleware<State> {
  return (_ctx, next) => {
    if (loop.refusedPercent > 0) loop.assertRoom();
    return next();
  };
}

/** Names the endpoint before its key is checked: a 401 is counted as the endpoint's. */
function nameEndpoint(name: string): Koa.Middleware<State> {
  return (ctx, next) => {
    ctx.state.endpoint = name;
    return next();
  };
}

/** Composes middleware. */
function inOrder(stack: readonly Koa.Middleware<State>[]): Koa.Middleware<State> {
  return stack.reduceRight((rest, first) => (ctx, next) => first(ctx, () => rest(ctx, next)));
}

/** Paths of the API without parameters. */
function plainPaths(router: Router<State>): string[] {
  const paths = router.stack.map(({ path }) => path);
  return [...new Set(paths.filter((path) => typeof path === 'string' && /^\/v1\/[^:*]+$/.test(path)))] as string[];
}

/** Precedes the routes: turns an unknown path, or one without this method, into an error in the error shape. */
function refuseUnknownPaths({ baseUrls }: Services, paths: readonly string[]): Koa.Middleware<State> {
  return async (ctx, next) => {
    await next();
    if (ctx.respond === false || ctx.body !== undefined) return;
    const isMethodUnknown = ctx.status === 405 || ctx.status === 501;
    // An endpoint's path would be the id in another one's: POST /v1/responses/responses.
    if (ctx.status === 404 || (isMethodUnknown && hasEndpointInBase(ctx.path, paths))) {
      throw unknownPath(ctx.method, ctx.path, `${baseUrls.of(ctx.req)}/v1`, paths);
    }
    if (isMethodUnknown) throw methodNotAllowed(ctx.method, ctx.response.get('allow'));
  };
}
