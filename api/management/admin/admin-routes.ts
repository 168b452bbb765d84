import type Router from '@koa/router';
import type { Database } from '../../../shared/database/database.ts';
import { readFairly } from '../../bounds/fair-reads.ts';
import { readText, takesOnly } from '../../http/read-query.ts';
import type { Services } from '../../services.ts';
import type { Context, State } from '../../state.ts';
import { cancelOneJob, jobFilters, jobList, liveFilters, liveJobs, oneJob } from '../console/jobs.ts';
import { jobsCsv } from '../console/jobs-csv.ts';
import { findRequest } from '../console/requests.ts';
import { usage, usageCsv, usageParameters } from '../console/usage.ts';
import { requireOperator } from '../sign-in/require-operator.ts';
import { requireSession } from '../sign-in/require-session.ts';
import { accountRoutes } from './accounts.ts';
import { creditRoutes } from './credits.ts';
import { adminKeyRoutes } from './keys.ts';
import { listAllModels } from './models.ts';
import { boardPath, leadToConsole, queueBoard } from './queue-board.ts';
import { listQueues } from './queues.ts';
import { userRoutes } from './users.ts';
import { listVendors } from './vendors.ts';
import { listSeenWorkers, workerReader } from './workers.ts';

/** Adds the operators' routes, one line each. `operator` accepts operator keys and operators' sessions. */
export function addAdminRoutes(router: Router<State>, services: Services, db: Database): void {
  const operator = requireOperator(services);
  const fairly = readFairly(services);
  const accounts = accountRoutes(services, db);
  const credits = creditRoutes(services, db);
  const users = userRoutes(services, db);
  const keys = adminKeyRoutes(services, db);
  const readWorkers = workerReader(services);

  const none = takesOnly();
  const page = ['limit', 'after'];
  const asked = (ctx: Context): string | undefined => readText(ctx.query, 'account');

  router.get('/admin/v1/usage', operator, takesOnly('account', ...usageParameters), fairly, usage(services, db, asked));
  router.get(
    '/admin/v1/usage.csv',
    operator,
    takesOnly('account', ...usageParameters),
    fairly,
    usageCsv(services, db, asked),
  );
  router.get(
    '/admin/v1/jobs',
    operator,
    takesOnly('account', ...jobFilters, ...page),
    fairly,
    jobList(services, db, asked),
  );
  router.get('/admin/v1/jobs.csv', operator, takesOnly('account', ...jobFilters), jobsCsv(services, db, asked));
  // Before the route with an id, which would match `live`.
  router.get(
    '/admin/v1/jobs/live',
    operator,
    takesOnly('account', ...liveFilters),
    fairly,
    liveJobs(services, db, asked),
  );
  router.get('/admin/v1/jobs/:id', operator, takesOnly('account'), oneJob(services, db, asked));
  router.delete('/admin/v1/jobs/:id', operator, takesOnly('account'), cancelOneJob(services, db, asked, 'an operator'));
  router.get('/admin/v1/requests/:id', operator, takesOnly('account'), findRequest(services, db, asked));
  router.get('/admin/v1/accounts', operator, takesOnly('search', ...page), accounts.list);
  router.post('/admin/v1/accounts', operator, none, accounts.create);
  router.get('/admin/v1/accounts/:id', operator, none, accounts.retrieve);
  router.patch('/admin/v1/accounts/:id', operator, none, accounts.change);
  router.get('/admin/v1/accounts/:id/credits', operator, takesOnly(...page), credits.list);
  router.post('/admin/v1/accounts/:id/credits', operator, none, credits.add);
  router.get('/admin/v1/users', operator, takesOnly('account', 'search', ...page), users.list);
  router.post('/admin/v1/users', operator, none, users.invite);
  router.patch('/admin/v1/users/:id', operator, none, users.change);
  router.delete('/admin/v1/users/:id', operator, none, users.remove);
  router.post('/admin/v1/users/:id/password-reset', operator, none, users.resetPassword);
  router.get('/admin/v1/accounts/:id/keys', operator, takesOnly('search', ...page), fairly, keys.list);
  router.post('/admin/v1/accounts/:id/keys', operator, none, keys.create);
  router.patch('/admin/v1/keys/:id', operator, none, keys.change);
  router.delete('/admin/v1/keys/:id', operator, none, keys.revoke);
  router.post('/admin/v1/keys/:id/rotate', operator, none, keys.rotate);
  router.get('/admin/v1/workers', operator, none, listSeenWorkers(readWorkers));
  router.get('/admin/v1/vendors', operator, none, listVendors(services, readWorkers));
  router.get('/admin/v1/models', operator, none, listAllModels(services));
  router.get('/admin/v1/queues', operator, none, listQueues(services));
  router.get(`${boardPath}{/*path}`, leadToConsole, requireSession(services), queueBoard(services));
}
