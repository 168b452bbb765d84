import { isOfPromptCacheKey } from '../../../shared/capabilities/chat.ts';
import { type ResponseItem, readItemId } from '../../../shared/capabilities/response.ts';
import { ApiError } from '../../../shared/errors.ts';
import { jobIdFromWire } from '../../../shared/ids.ts';
import type { JobState } from '../../../shared/jobs/job-state.ts';
import { groupBy } from '../../../shared/runtime/group-by.ts';
import { readMs } from '../../bounds/bounded-reads.ts';
import { largestBody } from '../../http/body/read-body.ts';
import type { Resolve, ResolveContext } from '../../pipeline/endpoint.ts';
import { isLargeBody } from '../../pipeline/large-bodies/large-bodies.ts';
import { shownId } from '../../pipeline/missing.ts';
import type { ParsedRequest } from '../../pipeline/parsed-request.ts';
import { joinedMedia, type MediaExtent } from '../../pipeline/request-extent.ts';
import { invalidParameter } from '../../pipeline/request-fields.ts';
import { textOf } from '../../pipeline/request-text.ts';
import { readFrames } from '../../pipeline/resource.ts';
import { type View, type ViewedJob, viewJob } from '../../replies/view.ts';
import { type EditedItems, editItems, type ItemsTask, type NamedItem, tooLong } from './edit-items.ts';
import { mediaOf, type ResponseRequirements, type ResponseViewOptions } from './parse-response.ts';
import { prependItems } from './prepend-items.ts';
import { forNextTurn } from './response-view.ts';

/** A mark for the prompt cache in compact JSON. In a string of it, the quotes would be escaped. */
const cacheMark = /"cache_control":(?!null)/;

/** A parsed request for a response. */
export type ParsedResponse = ParsedRequest<ResponseRequirements, ResponseViewOptions>;

/** The caller and its request. */
interface Reading extends Pick<ResolveContext, 'services' | 'account' | 'connection' | 'share'> {
  readonly view: View<ResponseViewOptions>;
}

/**
 * Inserts the items of earlier turns: the input and output of `previous_response_id` before the request's own items, and
 * each item instead of its reference. They come from our store, whoever the vendor is.
 * @throws ApiError 400 `previous_response_not_found`, 400 that names the reference, 413 for turns of excessive length.
 */
export function resolveTurns(view: View<ResponseViewOptions>): Resolve<ResponseRequirements, ResponseViewOptions> {
  return async (parsed, context) => {
    const { previousResponseId, references } = parsed.requirements;
    if (previousResponseId === undefined && references.length === 0) return parsed;
    // A revoked key must not reveal which responses exist.
    await context.assertActive();
    const reading = { ...context, view };
    const resolved = references.length === 0 ? parsed : await replaceReferences(reading, parsed, references);
    if (previousResponseId === undefined) return resolved;
    const { items, media, affinity } = await readConversation(reading, previousResponseId);
    return continuing(resolved, { items, media, affinity });
  };
}

/**
 * Adds the conversation that a request continues: its items before the request's own, their media, whether they are marked for the
 * prompt cache, and the affinity of its first turn, which a `prompt_cache_key` of its own precedes.
 * @throws ApiError 413 if they are too long together.
 */
export function continuing(parsed: ParsedResponse, { items, media, affinity }: Conversation): ParsedResponse {
  const request = prependItems(parsed.request, items);
  if (request.length > largestBody) throw tooLong('previous_response_id');
  const whole = withEarlierMarks(withEarlierMedia({ ...parsed, request } as ParsedResponse, media), [items]);
  if (affinity === undefined || isOfPromptCacheKey(parsed.affinity ?? '')) return whole;
  return { ...whole, affinity, viewOptions: { ...whole.viewOptions, affinity } };
}

/** Adds the media of earlier items to a request, both for its own extent and for the turns that continue it. */
function withEarlierMedia(parsed: ParsedResponse, earlier: MediaExtent): ParsedResponse {
  if (earlier === undefined) return parsed;
  const { extent, viewOptions } = parsed;
  const media = joinedMedia(viewOptions.media, earlier);
  return { ...parsed, extent: { ...extent, ...media }, viewOptions: { ...viewOptions, media } };
}

/** Notes marks for the prompt cache in the texts of earlier items. */
function withEarlierMarks(parsed: ParsedResponse, texts: readonly string[]): ParsedResponse {
  return texts.some((text) => cacheMark.test(text)) ? { ...parsed, marksCache: true } : parsed;
}

/** The conversation that a turn continues. */
export interface Conversation {
  /** JSON text of the list of its items. */
  readonly items: string;
  /** The images and documents among them. */
  readonly media: MediaExtent;
  /** The affinity of its first turn; undefined if an earlier release stored it. */
  readonly affinity: string | undefined;
}

/** Returns all items of a response: its input, then its output. */
async function readConversation(reading: Reading, id: string): Promise<Conversation> {
  const found = await findResponseJob(reading, jobIdFromWire(id));
  if (found === undefined) throw notFound(id);
  const { job } = found;
  if (job.outcome === undefined) {
    throw invalidParameter('previous_response_id', `The response '${id}' has not ended yet.`);
  }
  if (job.outcome !== 'completed') {
    const end = job.outcome === 'failed' ? 'has failed' : 'was cancelled';
    throw invalidParameter('previous_response_id', `The response '${id}' ${end}: it cannot be continued.`);
  }
  const input = await readInput(reading, found);
  const output = input && (await unlessExpired(readOutputItems(reading, found)));
  if (!output) throw notFound(id);
  const { text, media, affinity } = input;
  return { items: joinedLists(text, JSON.stringify(output)), media: joinedMedia(media, mediaOf(output)), affinity };
}

/** Resolves to undefined instead of rejecting with `resume_expired`. */
async function unlessExpired<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (error instanceof ApiError && error.code === 'resume_expired') return undefined;
    throw error;
  }
}

function notFound(id: string): ApiError {
  return new ApiError('previous_response_not_found', `Previous response with id '${shownId(id)}' not found.`, {
    param: 'previous_response_id',
  });
}

/** A stored response: its job, and that as seen by its view, which is parsed once for all that a request reads of it. */
export interface StoredResponse {
  readonly job: JobState;
  readonly viewed: ViewedJob<ResponseViewOptions>;
}

/** Returns the caller's stored response, if there is one. */
export async function findResponseJob(
  { services, account, connection, share }: Omit<Reading, 'view'>,
  jobId: string | undefined,
): Promise<StoredResponse | undefined> {
  const job = jobId && (await connection.wait(services.storedJobs.find(jobId), readMs));
  if (!job || job.account !== account || job.endpoint !== 'responses') return undefined;
  const viewed = await unlessExpired(viewJob(services, job, services.baseUrl, share));
  return isStored(viewed) ? { job, viewed } : undefined;
}

/** Whether a response was made to be kept, and is. Those kept for another reason (a keyed or asynchronous job) are no resources. */
function isStored(viewed: ViewedJob | undefined): viewed is StoredResponse['viewed'] {
  const { echo } = (viewed?.viewOptions ?? {}) as Partial<ResponseViewOptions>;
  return echo !== undefined && echo.store !== false;
}

/** Input items of a response, earlier turns' first, as the task says; undefined if they are no longer stored. */
export async function readInputItems(
  reading: Pick<Reading, 'services' | 'connection' | 'share'>,
  response: StoredResponse,
  task: Exclude<ItemsTask, { select: 'all' }>,
): Promise<ResponseItem[] | undefined> {
  const input = await readInput(reading, response);
  if (input === undefined) return undefined;
  const { text } = await edit({ ...reading, account: response.job.account }, input.text, task);
  return JSON.parse(text) as ResponseItem[];
}

/** Its whole input as JSON text of a list, sliced from the request: parsing a long one would block the event loop. */
async function readInput(
  { services, connection, share }: Pick<Reading, 'services' | 'connection' | 'share'>,
  { job, viewed: { viewOptions } }: StoredResponse,
): Promise<({ readonly text: string } & Pick<Conversation, 'media' | 'affinity'>) | undefined> {
  const reading = services.storedJobs.findRequest(job, (bytes) => share.grow(bytes));
  const text = await connection.wait(reading, readMs);
  if (text === undefined) return undefined;
  const { media, affinity } = viewOptions;
  return { text: inputOf(text, { viewOptions }), media, affinity };
}

const head = '{"input":';

/** Slices the input from the text of a request made by `parseResponse`, including prepended items. */
export function inputOf(
  request: string,
  { viewOptions }: { readonly viewOptions: Pick<ResponseViewOptions, 'afterInput'> },
): string {
  const { afterInput } = viewOptions;
  return request.slice(head.length, request.length - afterInput);
}

/** Joins lists, all of them JSON text. */
export function joinedLists(...lists: readonly string[]): string {
  const items = lists.map((list) => list.slice(1, -1)).filter((text) => text !== '');
  return `[${items.join(',')}]`;
}

/** The output items of a response, for the turn that continues it. */
async function readOutputItems(reading: Reading, { job, viewed }: StoredResponse): Promise<ResponseItem[]> {
  const { view } = reading;
  const body = view.held(forNextTurn(viewed), await readFrames(reading, view, job));
  return (JSON.parse(body) as { output: ResponseItem[] }).output;
}

/** @throws ApiError 400 that names the first unknown reference, 413 for items that are too long together. */
async function replaceReferences(
  reading: Reading,
  parsed: ParsedResponse,
  references: readonly string[],
): Promise<ParsedResponse> {
  const text = textOf(parsed.request);
  const named = await readNamedItems(reading, references);
  const items = await edit(reading, inputOf(text, parsed), { select: 'all', named });
  const { afterInput } = parsed.viewOptions;
  const request = `${head}${items.text}${text.slice(text.length - afterInput)}`;
  const earlier = [...named.values()].map(({ text }) => text);
  return withEarlierMarks(withEarlierMedia({ ...parsed, request } as ParsedResponse, items.media), earlier);
}

/** Reads a list of items; a long one in a thread, so that no other request waits for it. */
async function edit(
  { services, account, connection }: Pick<Reading, 'services' | 'account' | 'connection'>,
  list: string,
  task: ItemsTask,
): Promise<EditedItems> {
  const body = new TextEncoder().encode(list);
  if (!isLargeBody(body)) return editItems(list, task);
  const left = new AbortController();
  try {
    return await connection.wait(services.largeBodies.edit(body, task, account, left.signal));
  } finally {
    left.abort();
  }
}

/** Maximum number of responses whose items one request refers to: each is read, one after the other, before it is admitted. */
const maxReferred = 1000;

/** Returns the items of these ids, up to the first missing one. @throws ApiError 400 for too many responses, 413. */
async function readNamedItems(reading: Reading, ids: readonly string[]): Promise<ReadonlyMap<string, NamedItem>> {
  const wanted = new Set(ids);
  const byJob = groupBy([...wanted], (id) => readItemId(id)?.jobId);
  if (byJob.size > maxReferred) throw tooManyReferred();
  const found = new Map<string, NamedItem>();
  let length = 0;
  const isMissing = (id: string): boolean => !found.has(id);
  // In the order of their first ids.
  for (const [jobId, own] of byJob) {
    if (!own.some(isMissing)) continue;
    for await (const items of jobId === undefined ? [] : readItems(reading, jobId, [...wanted])) {
      for (const item of items) {
        if (item.id === undefined || !wanted.has(item.id) || found.has(item.id)) continue;
        const text = JSON.stringify(item);
        found.set(item.id, { text, media: mediaOf([item]) });
        length += text.length;
        if (length > largestBody) throw tooLong('input');
      }
      // An id of the caller's own may be that of any input item.
      if (!own.some(isMissing) && !byJob.has(undefined)) break;
    }
    if (isMissing(own[0] as string)) break;
  }
  return found;
}

function tooManyReferred(): ApiError {
  const message = `The items of at most ${maxReferred} responses can be referred to at a time: continue the last one by 'previous_response_id'.`;
  return invalidParameter('input', message);
}

/**
 * Yields the output items of a response, then, as they may be those of a long conversation, its input items with these ids; none if it
 * is not stored.
 */
async function* readItems(
  reading: Reading,
  jobId: string,
  ids: readonly string[],
): AsyncGenerator<readonly ResponseItem[]> {
  const found = await findResponseJob(reading, jobId);
  if (found === undefined) return;
  const { job } = found;
  if (job.outcome === 'completed') yield (await unlessExpired(readOutputItems(reading, found))) ?? [];
  yield (await readInputItems(reading, found, { select: 'named', jobId: job.id, ids })) ?? [];
}
