import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Outlet,
  type RouteComponent,
  redirect,
} from '@tanstack/react-router';
import { type ListSearch, readListSearch } from './api/list-search.ts';
import { onSignedOut, queryClient } from './api/query-client.ts';
import { RequestError } from './api/request.ts';
import { sessionQuery } from './api/session.ts';
import { loadPart } from './load-part.ts';
import { readModelsSearch } from './pages/models/models-search.ts';
import { readPlaygroundSearch } from './pages/playground/playground-search.ts';
import {
  readAllJobsSearch,
  readAllUsageSearch,
  readJobsSearch,
  readPeriod,
  readUsageSearch,
} from './pages/usage/usage-search.ts';
import { PageError, PageNotFound, PagePending } from './shell/page-states.tsx';
import { Shell } from './shell/shell.tsx';
import { leaveWhenRead } from './shell/shown-once.ts';

const root = createRootRoute({ component: Outlet });

/** Makes a page get of its address what `read` returns, and nothing else: the router adds what `read` has left out, as it is. */
function only<Search extends object>(read: (given: Record<string, unknown>) => Search) {
  return (given: Record<string, unknown>): Search => ({
    ...Object.fromEntries(Object.keys(given).map((name) => [name, undefined])),
    ...read(given),
  });
}

/** The return address after sign-in: a path of this console, never another site's. `ended`: because the session has ended. */
function readReturn(search: Record<string, unknown>): { return?: string; error?: string; ended?: true } {
  const { return: path, error, ended } = search;
  return {
    ...(ended === true ? { ended } : {}),
    ...(typeof path === 'string' && /^\/(?![/\\])/.test(path) ? { return: path } : {}),
    // An identity provider's refusal is returned like this.
    ...(typeof error === 'string' ? { error } : {}),
  };
}

/** `create`: the form for a new key is open. */
function readKeysSearch(search: Record<string, unknown>): { create?: true } & ListSearch {
  return { ...readListSearch('keys')(search), ...(search.create === true ? { create: true } : {}) };
}

/** `invited`: the token is for a first password. */
function readToken(search: Record<string, unknown>): { token?: string; invited?: true } {
  return {
    ...(typeof search.token === 'string' ? { token: search.token } : {}),
    ...(search.invited === true ? { invited: true } : {}),
  };
}

/** Wraps every page that needs a session: without one, the user signs in first and returns. */
const shell = createRoute({
  getParentRoute: () => root,
  id: 'shell',
  component: Shell,
  beforeLoad: async ({ location }) => {
    try {
      await queryClient.ensureQueryData(sessionQuery);
    } catch (error) {
      if (!(error instanceof RequestError) || error.status !== 401) throw error;
      throw redirect({ to: '/sign-in', search: location.href === '/' ? {} : { return: location.href } });
    }
  },
});

const inShell = () => shell;
const outside = () => root;

/** The component of a page, whose code is loaded on navigation. */
function page<Name extends string>(load: () => Promise<Record<Name, RouteComponent>>, name: Name) {
  return lazyRouteComponent(() => loadPart(load), name);
}

/** Every page, one line each. */
const routes = [
  createRoute({
    getParentRoute: outside,
    path: '/sign-in',
    validateSearch: only(readReturn),
    component: page(() => import('./pages/sign-in/sign-in-page.tsx'), 'SignInPage'),
  }),
  createRoute({
    getParentRoute: outside,
    path: '/sign-up',
    validateSearch: only(readReturn),
    component: page(() => import('./pages/sign-in/sign-up-page.tsx'), 'SignUpPage'),
  }),
  createRoute({
    getParentRoute: outside,
    path: '/forgot-password',
    component: page(() => import('./pages/sign-in/forgot-password-page.tsx'), 'ForgotPasswordPage'),
  }),
  createRoute({
    getParentRoute: outside,
    path: '/confirm-email',
    validateSearch: only(readToken),
    component: page(() => import('./pages/sign-in/confirm-email-page.tsx'), 'ConfirmEmailPage'),
  }),
  createRoute({
    getParentRoute: outside,
    path: '/reset-password',
    validateSearch: only(readToken),
    component: page(() => import('./pages/sign-in/reset-password-page.tsx'), 'ResetPasswordPage'),
  }),
] as const;

const models = createRoute({ getParentRoute: inShell, path: '/models' });
const inModels = () => models;

const modelRoutes = [
  createRoute({
    getParentRoute: inModels,
    path: '/',
    validateSearch: only(readModelsSearch),
    component: page(() => import('./pages/models/models-page.tsx'), 'ModelsPage'),
  }),
  // The rest of the address: a model's id may contain slashes.
  createRoute({
    getParentRoute: inModels,
    path: '$',
    component: page(() => import('./pages/models/model-page.tsx'), 'ModelPage'),
  }),
] as const;

const shellRoutes = [
  // Any address without a page.
  createRoute({ getParentRoute: inShell, path: '/$', component: PageNotFound }),
  createRoute({
    getParentRoute: inShell,
    path: '/',
    validateSearch: only(readPeriod),
    component: page(() => import('./pages/overview/overview-page.tsx'), 'OverviewPage'),
  }),
  createRoute({
    getParentRoute: inShell,
    path: '/keys',
    validateSearch: only(readKeysSearch),
    component: page(() => import('./pages/keys/keys-page.tsx'), 'KeysPage'),
  }),
  createRoute({
    getParentRoute: inShell,
    path: '/usage',
    validateSearch: only(readUsageSearch),
    component: page(() => import('./pages/usage/usage-page.tsx'), 'UsagePage'),
  }),
  createRoute({
    getParentRoute: inShell,
    path: '/jobs/$jobId',
    component: page(() => import('./pages/usage/job-page.tsx'), 'JobPage'),
  }),
  createRoute({
    getParentRoute: inShell,
    path: '/requests/$requestId',
    component: page(() => import('./pages/requests/request-page.tsx'), 'RequestPage'),
  }),
  createRoute({
    getParentRoute: inShell,
    path: '/settings',
    component: page(() => import('./pages/settings/settings-page.tsx'), 'SettingsPage'),
  }),
  createRoute({
    getParentRoute: inShell,
    path: '/playground',
    validateSearch: only(readPlaygroundSearch),
    component: page(() => import('./pages/playground/playground-page.tsx'), 'PlaygroundPage'),
  }),
  createRoute({
    getParentRoute: inShell,
    path: '/jobs',
    validateSearch: only(readJobsSearch),
    component: page(() => import('./pages/jobs/jobs-page.tsx'), 'JobsPage'),
  }),
  models.addChildren(modelRoutes),
  createRoute({
    getParentRoute: inShell,
    path: '/operator/accounts',
    validateSearch: only(readListSearch('search')),
    component: page(() => import('./pages/operator/accounts-page.tsx'), 'AccountsPage'),
  }),
  createRoute({
    getParentRoute: inShell,
    path: '/operator/accounts/$accountId',
    validateSearch: only(readListSearch('users', 'keys')),
    component: page(() => import('./pages/operator/account-page.tsx'), 'AccountPage'),
  }),
  createRoute({
    getParentRoute: inShell,
    path: '/operator/users',
    validateSearch: only(readListSearch('users')),
    component: page(() => import('./pages/operator/users-page.tsx'), 'UsersPage'),
  }),
  createRoute({
    getParentRoute: inShell,
    path: '/operator/vendors',
    validateSearch: only(readListSearch('search')),
    component: page(() => import('./pages/operator/vendors-page.tsx'), 'VendorsPage'),
  }),
  createRoute({
    getParentRoute: inShell,
    path: '/operator/workers',
    component: page(() => import('./pages/operator/workers-page.tsx'), 'WorkersPage'),
  }),
  createRoute({
    getParentRoute: inShell,
    path: '/operator/usage',
    validateSearch: only(readAllUsageSearch),
    component: page(() => import('./pages/operator/all-usage-page.tsx'), 'AllUsagePage'),
  }),
  createRoute({
    getParentRoute: inShell,
    path: '/operator/models',
    validateSearch: only(readModelsSearch),
    component: page(() => import('./pages/operator/all-models-page.tsx'), 'AllModelsPage'),
  }),
  createRoute({
    getParentRoute: inShell,
    path: '/operator/jobs/$jobId',
    component: page(() => import('./pages/operator/operator-job-page.tsx'), 'OperatorJobPage'),
  }),
  createRoute({
    getParentRoute: inShell,
    path: '/operator/jobs',
    validateSearch: only(readAllJobsSearch),
    component: page(() => import('./pages/operator/all-jobs-page.tsx'), 'AllJobsPage'),
  }),
] as const;

export const router = createRouter({
  routeTree: root.addChildren([...routes, shell.addChildren(shellRoutes)]),
  basepath: '/console',
  defaultPreload: 'intent',
  defaultPendingComponent: PagePending,
  defaultErrorComponent: PageError,
  defaultNotFoundComponent: PageNotFound,
  scrollRestoration: true,
});

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
}

/** Whether a page is being left for the sign-in. */
let isLeaving = false;

// If a session ends while a page is open, sign in and return to it.
onSignedOut(() => {
  const { pathname, href } = router.state.location;
  const isOutside = routes.some((route) => route.fullPath === pathname);
  // Without a session so far, the shell leads to the sign-in.
  if (isOutside || isLeaving || queryClient.getQueryData(sessionQuery.queryKey) === undefined) return;
  leaveWhenRead(() => {
    isLeaving = true;
    void router.navigate({ to: '/sign-in', search: { return: href, ended: true }, ignoreBlocker: true }).finally(() => {
      isLeaving = false;
      // Not before: a page that still shows it would ask for it again.
      queryClient.removeQueries({ queryKey: sessionQuery.queryKey });
    });
  });
});
