import { z } from 'zod';
import { authCalls } from '../management/sign-in/auth-calls.ts';
import { authPath } from '../management/sign-in/auth-path.ts';
import { makerOperations } from './maker-operations.ts';
import type { Answer, Operation, Operations, Tag } from './operation.ts';
import { accountQuery, jobQuery, liveJobQuery, modelsQuery, pageQuery, usageQuery } from './queries.ts';
import { readingOperations } from './reading-operations.ts';
import { authRequestName, pascalCase } from './request-schemas.ts';

/** Jobs and usage: of one account for the console, of all for operators. */
function sharedOperations(base: string, tag: Tag, guard: Operation['guard'], more: Operation['query']): Operations {
  const name = tag === 'Operators' ? 'Any' : 'Own';
  const one = (id: string, summary: string, answer: Answer, query: Operation['query'] = {}): Operation => ({
    ...{ id: `${id}${name}`, tag, guard, summary, answer, query: { ...query, ...more } },
  });
  const page = pageQuery(50, 100);
  return {
    [`GET ${base}/usage`]: one('usage', 'Get usage in groups', { json: 'ConsoleUsage' }, usageQuery),
    [`GET ${base}/usage.csv`]: one('usageCsv', 'Download usage in groups as CSV', { types: ['text/csv'] }, usageQuery),
    [`GET ${base}/jobs`]: one('jobs', 'List jobs', { json: 'ConsoleJobPage' }, { ...page, ...jobQuery }),
    [`GET ${base}/jobs.csv`]: one('jobsCsv', 'Download jobs as CSV', { types: ['text/csv'] }, jobQuery),
    [`GET ${base}/jobs/live`]: one('liveJobs', 'List unfinished jobs', { json: 'ConsoleJobPage' }, liveJobQuery),
    [`GET ${base}/jobs/:id`]: one('job', 'Get a job', { json: 'ConsoleJob' }),
    [`GET ${base}/requests/:id`]: one('request', 'Find a request by its id, or the id of its job', {
      json: 'FoundRequest',
    }),
    [`DELETE ${base}/jobs/:id`]: one('cancelJob', 'Cancel a job', { json: 'ConsoleJob' }),
  };
}

/** An operation of the console. */
const signedIn = (operation: Omit<Operation, 'guard' | 'tag'>): Operation => ({
  ...operation,
  tag: 'Console',
  guard: 'session',
});

const keys: Operations = {
  'GET /console/api/keys': signedIn({
    ...{ id: 'keysOwn', summary: 'List the API keys of the account' },
    query: pageQuery(50, 200),
    answer: { json: 'KeyPage' },
  }),
  'POST /console/api/keys': signedIn({
    ...{ id: 'createKeyOwn', summary: 'Create an API key', json: 'KeyFields' },
    answer: { status: 201, json: 'KeyWithText' },
  }),
  'PATCH /console/api/keys/:id': signedIn({
    ...{ id: 'changeKeyOwn', summary: 'Change an API key', json: 'KeyChange', answer: { json: 'Key' } },
  }),
  'DELETE /console/api/keys/:id': signedIn({
    ...{ id: 'revokeKeyOwn', summary: 'Revoke an API key', answer: { json: 'Key' } },
  }),
  'POST /console/api/keys/:id/rotate': signedIn({
    ...{ id: 'rotateKeyOwn', summary: 'Replace an API key by a new one', json: 'KeyRotation' },
    answer: { status: 201, json: 'KeyWithText' },
  }),
};

/** The calls of the sign-in, each by its own path. */
function authOperations(): Operations {
  const operations = Object.entries(authCalls).map(([path, { method, fields }]): [string, Operation] => [
    `${method} ${authPath}${path}`,
    {
      id: `auth${pascalCase(path)}`,
      tag: 'Sign-in',
      guard: 'public',
      summary: pascalCase(path)
        .replace(/([a-z0-9])([A-Z])/g, (_, end: string, start: string) => `${end} ${start.toLowerCase()}`)
        .replace('oauth2', 'by OpenID Connect'),
      ...(fields === undefined ? {} : { json: authRequestName(path) }),
      answer: path === '/callback/oidc' ? { status: 302 } : { json: 'AuthAnswer' },
    },
  ]);
  return Object.fromEntries(operations);
}

/** The parts of `/v1` that the playground lacks: sockets, stored responses, and information about keys. */
const notInPlayground = /^(GET \/v1\/(key|usage|jobs|responses)|\w+ \/v1\/responses\/:id.*|GET .*\/ws)$/;

function playgroundOperations(): Operations {
  const own = Object.entries({ ...makerOperations, ...readingOperations });
  return Object.fromEntries(
    own
      .filter(([route]) => !notInPlayground.test(route))
      .map(([route, { example: _, ...operation }]) => [
        route.replace(' /v1/', ' /console/api/v1/'),
        {
          ...operation,
          ...{ id: `playground_${operation.id}`, tag: 'Playground', guard: 'session' },
          // Errors of the session's guard have the shape of the console's other errors.
          ...(operation.isAnthropic && { isAnthropic: 'by_header' }),
        } satisfies Operation,
      ]),
  );
}

/** The operations of `/console/api`. */
export const consoleOperations: Operations = {
  'GET /console/api/settings': {
    ...{ id: 'settings', tag: 'Console', guard: 'public', summary: 'Get what a page needs before the sign-in' },
    answer: { json: 'Settings' },
  },
  'GET /console/api/session': signedIn({
    ...{ id: 'session', summary: 'Get the signed-in user and the account', answer: { json: 'Session' } },
  }),
  'GET /console/api/models': signedIn({
    ...{ id: 'modelsOwn', summary: 'List all models with limits and prices', query: modelsQuery },
    answer: { json: 'ConsoleModels' },
  }),
  'GET /console/api/models/*id': signedIn({
    ...{ id: 'modelOwn', summary: 'Get a model with its routes', answer: { json: 'ConsoleModel' } },
  }),
  ...sharedOperations('/console/api', 'Console', 'session', {}),
  'GET /console/api/jobs/:id/events': signedIn({
    ...{ id: 'followJobOwn', summary: 'Follow the events of a job', headers: ['Last-Event-ID'] },
    query: { starting_after: z.string() },
    answer: { types: ['text/event-stream'] },
  }),
  ...keys,
  ...authOperations(),
  ...playgroundOperations(),
};

/** Jobs and usage for operators. */
export const operatorsSharedOperations: Operations = sharedOperations(
  '/admin/v1',
  'Operators',
  'operator',
  accountQuery,
);
