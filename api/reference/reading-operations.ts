import { z } from 'zod';
import { videoVariants } from '../../shared/capabilities/video.ts';
import { bucketWidths } from '../endpoints/account/usage-by-model.ts';
import { jobStatuses } from '../ledger/job-list.ts';
import type { Operation, Operations } from './operation.ts';
import { orderQuery, pageQuery } from './queries.ts';

const events = 'text/event-stream';
/** An operation for an API key that costs nothing. */
const keyed = (operation: Omit<Operation, 'guard'>): Operation => ({ ...operation, guard: 'key' });
const resume = {
  starting_after: z.string().describe('The id of the last event received: the stream resumes after it.'),
};
const ownModels =
  'With an `anthropic-version` header the answer has the shape of the API of Anthropic, with `limit`, `after_id` and `before_id`.';

const account: Operations = {
  'GET /v1/key': keyed({
    ...{ id: 'getKey', tag: 'Account', summary: 'Get the calling key, its limits and the balance of its account' },
    answer: { json: 'OwnKey' },
    example: {},
  }),
  'GET /v1/usage': keyed({
    ...{ id: 'getUsage', tag: 'Account', summary: 'Get the usage of the account by hour or day and model' },
    description: `Buckets are whole hours or days of UTC: at most ${bucketWidths['1h'].most} hours or ${bucketWidths['1d'].most} days.`,
    query: {
      start_time: z.int().min(0).describe('In seconds since 1970; left out: the last 24 hours or 7 days.'),
      end_time: z.int().min(0).describe('In seconds since 1970; left out: now.'),
      bucket_width: z.enum(Object.keys(bucketWidths)).default('1d'),
    },
    answer: { json: 'UsageReport' },
    example: { query: { bucket_width: '1h' } },
  }),
};

const jobs: Operations = {
  'GET /v1/jobs': keyed({
    ...{ id: 'listJobs', tag: 'Jobs', summary: 'List the jobs of the account' },
    description:
      'Jobs that have ended, and those unfinished ones that are asynchronous, in the background, keyed or of media.',
    query: {
      ...pageQuery(20, 100),
      ...orderQuery,
      status: z.enum(jobStatuses),
      model: z.string().describe('The model that the request named.'),
    },
    answer: { json: 'JobPage' },
    example: { query: { limit: '5', status: 'completed' } },
  }),
  'GET /v1/jobs/:id': keyed({
    ...{ id: 'getJob', tag: 'Jobs', summary: 'Get a job, with its result or error once it has ended' },
    answer: { json: 'Job' },
    example: {},
  }),
  'GET /v1/jobs/:id/events': keyed({
    ...{ id: 'followJob', tag: 'Jobs', summary: 'Follow the events of a job' },
    description: 'The events of the endpoint that made the job, from the first or after the one named.',
    query: resume,
    headers: ['Last-Event-ID'],
    answer: { types: [events] },
    example: {},
  }),
  'GET /v1/jobs/:id/ws': keyed({
    ...{ id: 'watchJob', tag: 'Jobs', summary: 'Follow the events of a job by WebSocket' },
    description: 'A browser sends its key by the subprotocols `sluice` and `openai-insecure-api-key.<key>`.',
    query: resume,
    answer: { status: 101 },
  }),
  'DELETE /v1/jobs/:id': keyed({
    ...{ id: 'cancelJob', tag: 'Jobs', summary: 'Cancel a job' },
    description: 'A job that has ended stays as it is.',
    answer: { json: 'Job' },
    example: {},
  }),
};

const responses: Operations = {
  'GET /v1/responses': keyed({
    ...{ id: 'openResponseSocket', tag: 'Responses', summary: 'Create responses by WebSocket' },
    description: "OpenAI's WebSocket mode: one connection for many turns.",
    answer: { status: 101 },
  }),
  'GET /v1/responses/:id': keyed({
    ...{ id: 'getResponse', tag: 'Responses', summary: 'Get a stored response, or resume its stream' },
    query: {
      stream: z.boolean().default(false),
      starting_after: z.int().min(0).describe('The `sequence_number` after which the stream resumes.'),
      include: z.array(z.string()),
    },
    answer: { json: 'Response', types: [events] },
    example: {},
  }),
  'DELETE /v1/responses/:id': keyed({
    ...{ id: 'deleteResponse', tag: 'Responses', summary: 'Delete a stored response' },
    answer: { json: 'ResponseDeleted' },
    example: {},
  }),
  'POST /v1/responses/:id/cancel': keyed({
    ...{ id: 'cancelResponse', tag: 'Responses', summary: 'Cancel a background response' },
    answer: { json: 'Response' },
    example: {},
  }),
  'GET /v1/responses/:id/input_items': keyed({
    ...{ id: 'listInputItems', tag: 'Responses', summary: 'List the input items of a stored response' },
    query: { ...pageQuery(20, 100), ...orderQuery, include: z.array(z.string()) },
    answer: { json: 'ResponseItemPage' },
    example: {},
  }),
};

const videos: Operations = {
  'GET /v1/videos': keyed({
    ...{ id: 'listVideos', tag: 'Videos', summary: 'List the videos of the account' },
    query: { ...pageQuery(20, 100, 0), ...orderQuery },
    answer: { json: 'VideoPage' },
    example: {},
  }),
  'GET /v1/videos/:id': keyed({
    ...{ id: 'getVideo', tag: 'Videos', summary: 'Get a video' },
    answer: { json: 'Video' },
    example: {},
  }),
  'GET /v1/videos/:id/content': keyed({
    ...{ id: 'getVideoContent', tag: 'Videos', summary: 'Download a completed video' },
    query: { variant: z.enum(videoVariants).default('video') },
    answer: { types: ['video/mp4', 'video/webm', 'image/webp', 'image/jpeg', 'image/png'], inRanges: true },
    example: { output: 'video.mp4' },
  }),
  'DELETE /v1/videos/:id': keyed({
    ...{ id: 'deleteVideo', tag: 'Videos', summary: 'Delete a video' },
    description: 'A video that is still being made is cancelled first.',
    answer: { json: 'VideoDeleted' },
    example: {},
  }),
};

/** The operations of `/v1` that make no jobs. */
export const readingOperations: Operations = {
  'GET /v1/models': keyed({
    ...{ id: 'listModels', tag: 'Models', summary: 'List the models that the key may use' },
    description: ownModels,
    isAnthropic: 'by_header',
    answer: { json: 'ModelList' },
    example: {},
  }),
  'GET /v1/models/*id': keyed({
    ...{ id: 'getModel', tag: 'Models', summary: 'Get a model' },
    description: 'Ids may contain slashes.',
    isAnthropic: 'by_header',
    answer: { json: 'Model' },
    example: {},
  }),
  ...responses,
  ...videos,
  ...jobs,
  ...account,
};
