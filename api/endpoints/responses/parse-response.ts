import { cacheAffinity } from '../../../shared/capabilities/chat.ts';
import { mayBeInexact, parseExact, stringifyExact } from '../../../shared/capabilities/exact-json.ts';
import type { RequestItem } from '../../../shared/capabilities/response-items.ts';
import { type ResponseRequest, responseRequest } from '../../../shared/capabilities/response-request.ts';
import { ApiError } from '../../../shared/errors.ts';
import { exceededLimit, parseJson } from '../../http/body/parse-json.ts';
import type { Parse, ParsedRequest } from '../../pipeline/parsed-request.ts';
import {
  extentOf,
  feeExtent,
  InputMedia,
  type MediaExtent,
  type ModelLimits,
  readModelLimits,
  reasoningExtent,
} from '../../pipeline/request-extent.ts';
import { invalidParameter, leaveOutNulls, readRequestFields, requestTags } from '../../pipeline/request-fields.ts';
import { assertFew, responseExtras, vendorFacts } from '../../pipeline/vendor-facts.ts';
import { responseChatFields } from './response-chat-fields.ts';
import { responseEcho } from './response-echo.ts';
import { type ChatRefusal, ignoredByChat, refusedByChat } from './response-over-chat.ts';

/** Facts of a request for a response that the endpoint needs before it becomes a job. */
export interface ResponseRequirements {
  /** The response that this one continues, as the caller named it. */
  readonly previousResponseId: string | undefined;
  /** Ids of referenced items: `{type: 'item_reference', id}`. */
  readonly references: readonly string[];
  /** Why a chat cannot replace the vendor's own Responses API. */
  readonly chatRefused: ChatRefusal | undefined;
  /** Names of fields and hosted tools that a chat ignores. */
  readonly chatIgnored: readonly string[];
  /** Fields of the substitute chat. */
  readonly chatFields: readonly string[];
  readonly limits: ModelLimits;
}

/** View options of a response. */
export interface ResponseViewOptions {
  /** The fields of the Response object that repeat the request. */
  readonly echo: Readonly<Record<string, unknown>>;
  readonly include: readonly string[];
  /** Set by `forNextTurn`, never stored. */
  readonly isForNextTurn?: true;
  /** Characters of the job's request after its input, by which the input is sliced without parsing. */
  readonly afterInput: number;
  /** The images and documents of the whole input, for the turns that continue it. */
  readonly media?: MediaExtent;
  /** As of `ParsedRequest`, for the turns that continue it: that of the conversation's first one. */
  readonly affinity?: string;
}

/** Parses `POST /v1/responses`. Its request starts with `"input"`, so that earlier turns can be prepended as text. */
export const parseResponse: Parse<ResponseRequirements, ResponseViewOptions> = (body) =>
  parseResponseFields(parseJson(body), body);

/** The same for the fields of a body. */
export function parseResponseFields(
  fields: Record<string, unknown>,
  body: Uint8Array,
): ParsedRequest<ResponseRequirements, ResponseViewOptions> {
  const wire = readRequestFields(responseRequest, fields);
  refuseChatFields(wire);
  const { model, input, stream, store, background, previous_response_id: previous, ...rest } = wire;
  const items = inputItems(input);
  const { hasMedia, hasImageDetail, hasFileDetail, media } = readParts(items);
  const references = items.flatMap(({ type, id }) => (type === 'item_reference' ? [String(id)] : []));
  assertFew(references, 'item references', 'input');
  const requirements: ResponseRequirements = {
    previousResponseId: previous ?? undefined,
    references,
    chatRefused: refusedByChat(wire),
    chatIgnored: [...ignoredByChat(wire), ...(hasFileDetail ? ['input.content.detail'] : [])],
    chatFields: [...responseChatFields(wire), ...(hasImageDetail ? ['messages.content.image_url.detail'] : [])],
    limits: readModelLimits('input', input, { max_output_tokens: wire.max_output_tokens }),
  };
  const affinity = cacheAffinity(wire.prompt_cache_key, items, wire.instructions);
  const afterInput = textAfterInput(rest, body);
  assertRepeatable(afterInput);
  const viewOptions: ResponseViewOptions = {
    echo: responseEcho(wire),
    include: wire.include ?? [],
    afterInput: afterInput.length,
    ...(media && { media }),
    affinity,
  };
  return {
    model,
    stream: stream === true,
    request: `{"input":${JSON.stringify(items)}${afterInput}`,
    hasMedia,
    affinity,
    viewOptions,
    ...requestTags(wire.metadata),
    ...vendorFacts(wire, responseExtras(wire)),
    extent: { ...extentOf(wire.max_output_tokens), ...media, ...feeExtent(wire), ...reasoningExtent(wire) },
    requirements,
    store: store ?? true,
    background: background === true,
  };
}

/** Chat fields that would override the gateway's own, or multiply the hold of an answer. */
const chatFields = [
  ...['messages', 'n', 'best_of', 'max_tokens', 'max_completion_tokens', 'functions', 'function_call', 'modalities'],
  'audio',
];

/** @throws ApiError 400 that names the field. */
function refuseChatFields(request: ResponseRequest): void {
  const foreign = chatFields.find((name) => request[name] != null);
  if (foreign !== undefined) throw invalidParameter(foreign, `'${foreign}' is not a parameter of this endpoint.`);
}

/** Converts input to items that all have a type. */
function inputItems(input: ResponseRequest['input']): readonly RequestItem[] {
  if (typeof input === 'string') return [{ type: 'message', role: 'user', content: input }];
  return (input ?? []).map((item) => {
    if (item.type != null) return item;
    return { ...item, type: item.role === undefined ? 'item_reference' : 'message' };
  });
}

/**
 * The text after the input. Separate, because in one object a field with a numeric name would precede the input. Integers of its
 * schemas are as their caller wrote them.
 */
function textAfterInput(fields: Record<string, unknown>, body: Uint8Array): string {
  const parsed = JSON.stringify(fields);
  const mayBeRounded = (fields.tools ?? fields.text) !== undefined && mayBeInexact.test(parsed);
  const rest = mayBeRounded ? stringifyExact({ ...fields, ...exactSchemas(body) }) : parsed;
  return `${rest === '{}' ? '' : ','}${rest.slice(1)}`;
}

/**
 * Maximum number of values beside the input, most of which each reading of the response repeats. They are parsed and written by the
 * event loop: two million take seconds. No model has a context for tools of so many.
 */
const maxBesideInput = 50_000;

/** @throws ApiError 400 for fields beside the input that have too many values. @param afterInput as of `textAfterInput` */
function assertRepeatable(afterInput: string): void {
  const limits = { nesting: Number.POSITIVE_INFINITY, values: maxBesideInput };
  if (afterInput.length <= maxBesideInput || exceededLimit(Buffer.from(afterInput), limits) === undefined) return;
  const message = `Too many values beside 'input', such as in 'tools': at most ${maxBesideInput} are accepted.`;
  throw new ApiError('invalid_request_error', message);
}

/** The fields of a body that contain schemas, their integers exact. */
function exactSchemas(body: Uint8Array): Record<string, unknown> {
  const exact = parseJson(body, parseExact);
  leaveOutNulls(responseRequest, exact);
  const { tools, text } = exact;
  return { ...(tools !== undefined && { tools }), ...(text !== undefined && { text }) };
}

/** Whether items contain image, audio or file data (rather than links), and set the detail of images or files. */
function readParts(items: readonly RequestItem[]): {
  hasMedia: boolean;
  hasImageDetail: boolean;
  hasFileDetail: boolean;
  media: MediaExtent;
} {
  const found = { hasMedia: false, hasImageDetail: false, hasFileDetail: false };
  const media = new InputMedia();
  for (const item of items) {
    const { type, content, output, result } = item;
    if (type === 'image_generation_call') found.hasMedia ||= typeof result === 'string';
    addMedia(item, media);
    for (const parts of [content, output]) {
      if (!Array.isArray(parts)) continue;
      for (const part of parts as (Record<string, unknown> | null)[]) {
        if (part === null) continue;
        found.hasMedia ||= isData(part);
        if (part.detail == null || part.detail === 'auto') continue;
        if (part.type === 'input_image') found.hasImageDetail = true;
        else if (part.type === 'input_file') found.hasFileDetail = true;
      }
    }
  }
  return { ...found, media: media.extent };
}

/** Items whose parts may be images and documents: a vendor may read those of others as text. */
const shownItems = new Set<unknown>([
  ...['message', 'function_call_output', 'custom_tool_call_output', 'computer_call_output', undefined, null],
]);

/** The images and documents of items, for the estimate of a hold. */
export function mediaOf(items: readonly RequestItem[]): MediaExtent {
  const media = new InputMedia();
  for (const item of items) addMedia(item, media);
  return media.extent;
}

function addMedia({ type, content, output }: RequestItem, media: InputMedia): void {
  if (!shownItems.has(type)) return;
  for (const parts of [content, Array.isArray(output) ? output : [output]]) {
    if (!Array.isArray(parts)) continue;
    for (const part of parts as (Record<string, unknown> | null | undefined | string)[]) {
      if (typeof part !== 'object' || part === null) continue;
      if (part.type === 'input_image' || part.type === 'computer_screenshot') media.addImage(part.image_url);
      else if (part.type === 'input_file') media.addDocument(part.file_data);
    }
  }
}

function isData({ type, image_url: url, file_data: data }: Record<string, unknown>): boolean {
  return type === 'input_audio' || typeof data === 'string' || (typeof url === 'string' && /^data:/i.test(url));
}
