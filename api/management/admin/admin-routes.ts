import type Router from '@koa/router';
import type { Database } from '../../../shared/database/database.ts';
import { readText } from '../../http/read-query.ts';
import type { Services } from '../../services.ts';
import type { Context, State } from '../../state.ts';
import { cancelOneJob, jobList, liveJobs, oneJob } from '../console/jobs.ts';
import { jobsCsv } from '../console/jobs-csv.ts';
import { findRequest } from '../console/requests.ts';
import { usage, usageCsv } from '../console/usage.ts';
import { requireOperator } from '../sign-in/require-operator.ts';
import { requireSession } from '../sign-in/require-session.ts';
import { accountRoutes } from './accounts.ts';
import { creditRoutes } from './credits.ts';
import { adminKeyRoutes } from './keys.ts';
import { listAllModels } from './models.ts';
import { boardPath, queueBoard } from './queue-board.ts';
import { listQueues } from './queues.ts';
import { userRoutes } from './users.ts';
import { listVendors } from './vendors.ts';
import { listSeenWorkers, workerReader } from './workers.ts';

/** Adds the operators' routes, one line each. `operator` accepts operator keys and operators' sessions. */
export function addAdminRoutes(router: Router<State>, services: Services, db: Database): void {
  const operator = requireOperator(services);
  const accounts = accountRoutes(services, db);
  const credits = creditRoutes(services, db);
  const users = userRoutes(services, db);
  const keys = adminKeyRoutes(services, db);
  const readWorkers = workerReader(services);

  const asked = (ctx: Context): string | undefined => readText(ctx.query, 'account');

  router.get('/admin/v1/usage', operator, usage(db, asked));
  router.get('/admin/v1/usage.csv', operator, usageCsv(db, asked));
  router.get('/admin/v1/jobs', operator, jobList(services, db, asked));
  router.get('/admin/v1/jobs.csv', operator, jobsCsv(services, db, asked));
  // Before the route with an id, which would match `live`.
  router.get('/admin/v1/jobs/live', operator, liveJobs(services, db, asked));
  router.get('/admin/v1/jobs/:id', operator, oneJob(services, db, asked));
  router.delete('/admin/v1/jobs/:id', operator, cancelOneJob(services, db, asked, 'an operator'));
  router.get('/admin/v1/requests/:id', operator, findRequest(services, db, asked));
  router.get('/admin/v1/accounts', operator, accounts.list);
  router.post('/admin/v1/accounts', operator, accounts.create);
  router.get('/admin/v1/accounts/:id', operator, accounts.retrieve);
  router.patch('/admin/v1/accounts/:id', operator, accounts.change);
  router.get('/admin/v1/accounts/:id/credits', operator, credits.list);
  router.post('/admin/v1/accounts/:id/credits', operator, credits.add);
  router.get('/admin/v1/users', operator, users.list);
  router.post('/admin/v1/users', operator, users.invite);
  router.patch('/admin/v1/users/:id', operator, users.change);
  router.delete('/admin/v1/users/:id', operator, users.remove);
  router.post('/admin/v1/users/:id/password-reset', operator, users.resetPassword);
  router.get('/admin/v1/accounts/:id/keys', operator, keys.list);
  router.post('/admin/v1/accounts/:id/keys', operator, keys.create);
  router.patch('/admin/v1/keys/:id', operator, keys.change);
  router.delete('/admin/v1/keys/:id', operator, keys.revoke);
  router.post('/admin/v1/keys/:id/rotate', operator, keys.rotate);
  router.get('/admin/v1/workers', operator, listSeenWorkers(readWorkers));
  router.get('/admin/v1/vendors', operator, listVendors(services, readWorkers));
  router.get('/admin/v1/models', operator, listAllModels(services));
  router.get('/admin/v1/queues', operator, listQueues(services));
  router.get(`${boardPath}{/*path}`, requireSession(services), queueBoard(services));
}
