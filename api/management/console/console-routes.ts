import type Router from '@koa/router';
import type { Database } from '../../../shared/database/database.ts';
import { readFairly } from '../../bounds/fair-reads.ts';
import { jobRoutes } from '../../endpoints/jobs/jobs.ts';
import type { Endpoint } from '../../pipeline/endpoint.ts';
import type { Services } from '../../services.ts';
import type { Context, State } from '../../state.ts';
import { authPath } from '../sign-in/auth-path.ts';
import { answerAuth } from '../sign-in/auth-route.ts';
import { requireGoodStanding } from '../sign-in/good-standing.ts';
import { requireSession } from '../sign-in/require-session.ts';
import { cancelOneJob, jobList, liveJobs, oneJob } from './jobs.ts';
import { jobsCsv } from './jobs-csv.ts';
import { consoleKeyRoutes } from './keys.ts';
import { modelList } from './models.ts';
import { oneModel } from './one-model.ts';
import { readSession } from './read-session.ts';
import { readSettings } from './read-settings.ts';
import { findRequest } from './requests.ts';
import { usage, usageCsv } from './usage.ts';

/** Adds the console's routes, one line each. Handlers after `signedIn` find the session in `ctx.state.session`. */
export function addConsoleRoutes(
  router: Router<State>,
  services: Services,
  db: Database,
  endpoints: ReadonlyMap<string, Endpoint>,
): void {
  const signedIn = requireSession(services);
  const fairly = readFairly(services);
  const keys = consoleKeyRoutes(services, db);
  const inGoodStanding = requireGoodStanding(db, services.config);

  const own = (ctx: Context): string => ctx.state.session.account;
  const { events } = jobRoutes(services, endpoints, own);

  router.get('/console/api/models', signedIn, modelList(services));
  router.get('/console/api/models/*id', signedIn, oneModel(services));
  router.get('/console/api/usage', signedIn, fairly, usage(services, db, own));
  router.get('/console/api/usage.csv', signedIn, fairly, usageCsv(services, db, own));
  router.get('/console/api/jobs', signedIn, fairly, jobList(services, db, own));
  router.get('/console/api/jobs.csv', signedIn, jobsCsv(services, db, own));
  // Before the route with an id, which would match `live`.
  router.get('/console/api/jobs/live', signedIn, fairly, liveJobs(services, db, own));
  router.get('/console/api/jobs/:id', signedIn, oneJob(services, db, own));
  router.delete('/console/api/jobs/:id', signedIn, cancelOneJob(services, db, own, 'its owner'));
  router.get('/console/api/jobs/:id/events', signedIn, events);
  router.get('/console/api/requests/:id', signedIn, findRequest(services, db, own));
  router.get('/console/api/session', signedIn, fairly, readSession(services, db));
  router.get('/console/api/settings', readSettings(services));
  router.all(`${authPath}/*path`, answerAuth(services));
  router.get('/console/api/keys', signedIn, fairly, keys.list);
  router.post('/console/api/keys', signedIn, inGoodStanding, keys.create);
  router.patch('/console/api/keys/:id', signedIn, inGoodStanding, keys.change);
  router.delete('/console/api/keys/:id', signedIn, keys.revoke);
  router.post('/console/api/keys/:id/rotate', signedIn, inGoodStanding, keys.rotate);
}
