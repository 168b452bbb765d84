import { ApiError, type ErrorData } from '../../../../shared/errors.ts';
import { parseJson } from '../../../http/body/parse-json.ts';
import type { Parse, ParsedRequest } from '../../../pipeline/parsed-request.ts';
import { readModelLimits } from '../../../pipeline/request-extent.ts';
import { invalidParameter } from '../../../pipeline/request-fields.ts';
import { parseResponseFields, type ResponseRequirements, type ResponseViewOptions } from '../parse-response.ts';

/** The fields of a response socket's message besides the request. */
export interface SocketEnvelope {
  readonly type: 'response.create' | 'response.cancel';
  /** Its lane; undefined for the default lane. */
  readonly streamId: string | undefined;
  /** False for a warm-up: the request only serves to be continued. */
  readonly generate: boolean;
  /** The response to cancel; defaults to the running one of its lane. */
  readonly responseId: string | undefined;
  /** Why the message is refused; reported when its lane reaches it, so that responses stay in order. */
  readonly refusal: ErrorData | undefined;
}

/** Facts of a parsed message besides its request. */
export interface SocketRequirements extends ResponseRequirements {
  readonly envelope: SocketEnvelope;
}

const streamIdPattern = /^[A-Za-z0-9_.-]{1,256}$/;

const plain: SocketEnvelope = {
  type: 'response.create',
  streamId: undefined,
  generate: true,
  responseId: undefined,
  refusal: undefined,
};

/** A parsed message. */
export type ParsedMessage = ParsedRequest<SocketRequirements, ResponseViewOptions>;

/** For messages that contain no request, or are refused. */
const nothing: ParsedRequest<ResponseRequirements, ResponseViewOptions> = {
  ...{ model: '', stream: true, request: '', hasMedia: false },
  viewOptions: { echo: {}, include: [], afterInput: 0 },
  requirements: {
    ...{ previousResponseId: undefined, references: [], chatRefused: undefined, chatIgnored: [], chatFields: [] },
    limits: readModelLimits('input', undefined, {}),
  },
};

/**
 * Parses a message of a response socket: `response.create` with the fields of `POST /v1/responses` beside it, or
 * `response.cancel`. Also runs in the large bodies' thread, so a refusal is no exception but part of the envelope, which
 * names its lane. https://developers.openai.com/api/docs/guides/websocket-mode
 */
export const parseSocketMessage: Parse<SocketRequirements, ResponseViewOptions> = (body) => {
  let envelope = plain;
  try {
    const { type, stream_id: streamId, ...message } = parseJson(body);
    envelope = { ...envelope, streamId: readStreamId(streamId) };
    if (type === 'response.cancel') return withEnvelope(nothing, { ...envelope, type, ...readCancel(message) });
    if (type !== 'response.create') throw unknownType(type);
    const { generate = true, ...request } = message;
    if (typeof generate !== 'boolean')
      throw invalidParameter('generate', "Invalid 'generate': expected true or false.");
    return withEnvelope(parseResponseFields(streamed(request), body), { ...envelope, generate });
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return withEnvelope(nothing, { ...envelope, refusal: error.toData() });
  }
};

/** The result for a binary message. */
export function refusedMessage(error: ApiError): ParsedMessage {
  return withEnvelope(nothing, { ...plain, refusal: error.toData() });
}

function withEnvelope(
  parsed: ParsedRequest<ResponseRequirements, ResponseViewOptions>,
  envelope: SocketEnvelope,
): ParsedRequest<SocketRequirements, ResponseViewOptions> {
  return { ...parsed, requirements: { ...parsed.requirements, envelope } };
}

function readStreamId(value: unknown): string | undefined {
  if (value === undefined) return undefined;
  if (typeof value === 'string' && streamIdPattern.test(value)) return value;
  const message =
    "The 'stream_id' field must be a non-empty string with at most 256 characters and may only contain letters, numbers, underscores, hyphens, and periods.";
  throw new ApiError('invalid_stream_id', message, { param: 'stream_id' });
}

function readCancel({
  response_id: responseId,
  ...others
}: Record<string, unknown>): Pick<SocketEnvelope, 'responseId'> {
  if (responseId !== undefined && typeof responseId !== 'string') {
    throw invalidParameter('response_id', "Invalid 'response_id': expected a string.");
  }
  if (Object.keys(others).length > 0) {
    throw new ApiError('invalid_request_error', 'response.cancel takes response_id and stream_id only.');
  }
  return { responseId };
}

function unknownType(type: unknown): ApiError {
  const given = typeof type === 'string' ? ` '${type.slice(0, 100)}'` : '';
  return invalidParameter('type', `Unknown message type${given}: send 'response.create' or 'response.cancel'.`);
}

/** Forces streaming, the only mode of a socket. */
function streamed(request: Record<string, unknown>): Record<string, unknown> {
  if (request.stream === false) throw invalidParameter('stream', 'A WebSocket always streams: leave this out.');
  if (request.background === true) {
    throw invalidParameter('background', 'A WebSocket has no background: use POST /v1/responses.');
  }
  return { ...request, stream: true };
}
