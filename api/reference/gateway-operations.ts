import { z } from 'zod';
import { livenessPaths, readinessPaths } from '../http/health-paths.ts';
import type { Answer, Operation, Operations } from './operation.ts';
import { pascalCase } from './request-schemas.ts';

const open = (operation: Omit<Operation, 'guard' | 'tag'>): Operation => ({
  ...operation,
  tag: 'Gateway',
  guard: 'public',
});

function health(paths: readonly string[], summary: string, answer: Answer): Operations {
  return Object.fromEntries(
    paths.map((path) => [`GET ${path}`, open({ id: `get${pascalCase(path)}`, summary, answer })]),
  );
}

/** The operations outside of `/v1` that need no session. */
export const gatewayOperations: Operations = {
  'GET /': open({ id: 'startPage', summary: 'The start page', answer: { types: ['text/html'], isCached: true } }),
  'GET /docs': open({
    id: 'docs',
    summary: 'This reference as a page',
    answer: { types: ['text/html'], isCached: true },
  }),
  'GET /openapi.json': open({
    ...{
      id: 'openapi',
      summary: 'This reference as an OpenAPI document',
      answer: { types: ['application/json'], isCached: true },
    },
  }),
  'GET /favicon.ico': open({
    ...{ id: 'favicon', summary: 'The icon of the pages', answer: { types: ['image/svg+xml'], isCached: true } },
  }),
  'GET /llms.txt': open({
    ...{
      id: 'llmsTxt',
      summary: 'What the gateway is, for language models',
      answer: { types: ['text/plain'], isCached: true },
    },
  }),
  ...health(livenessPaths, 'Whether this process lives', { json: 'Health' }),
  ...health(readinessPaths, 'Whether it can take requests: 200, or 503 with what is missing', {
    ...{ json: 'Readiness', unavailable: 'Readiness' },
  }),
  'GET /metrics': open({
    ...{
      id: 'metrics',
      summary: 'Metrics for Prometheus',
      answer: { types: ['text/plain', 'application/openmetrics-text'] },
    },
    description: 'For this machine; with `METRICS_TOKEN` for whoever sends it as a bearer token.',
  }),
  'GET /results/:hour/:name': open({
    ...{ id: 'getResult', summary: 'Download a result file by the signed link in an answer' },
    query: { expires: z.string(), signature: z.string() },
    answer: { types: ['image/*', 'audio/*', 'video/*', 'application/octet-stream'], inRanges: true },
  }),
};
