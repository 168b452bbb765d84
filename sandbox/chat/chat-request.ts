import type { IncomingHttpHeaders } from 'node:http';
import { isAbsent, isObject, type JsonObject } from '../json-value.ts';
import { findModel, type SandboxModel } from '../models.ts';
import { parseBody } from '../parse-body.ts';
import { readStop } from '../read-stop.ts';
import { type FaultKind, limitFault, type RequestOptions, readRequestOptions } from '../request-options.ts';
import { invalidParameter } from '../wire-error.ts';
import { type ChatMessage, readMessages } from './chat-message.ts';
import { readTools, type ToolUse } from './tool-use.ts';

/** The required form of the answer: text, any JSON object, or an instance of a schema. */
export type ResponseFormat = { type: 'text' } | { type: 'json_object' } | { type: 'json_schema'; schema: unknown };

const chatFaults: readonly FaultKind[] = [
  'silence',
  'reset',
  'malformed',
  'error',
  'rate_limit',
  'eof',
  'no_done',
  'no_usage',
  'slow_bytes',
  'large_event',
];

/** A validated `POST /v1/chat/completions` with its defaults filled in. */
export interface ChatRequest {
  model: SandboxModel;
  messages: readonly ChatMessage[];
  stream: boolean;
  includeUsage: boolean;
  /** Infinity if the request sets no limit. */
  maximumTokens: number;
  stop: readonly string[];
  choices: number;
  seed: number;
  /** Number of alternatives returned with each token's log probability; undefined: none requested. */
  topLogprobs: number | undefined;
  tools: ToolUse;
  responseFormat: ResponseFormat;
  reasoningEffort: string;
  testId: string | null;
  options: RequestOptions;
}

/**
 * Validates the body as OpenAI does; fields without effect here are validated for type and range only.
 * @throws WireError 400 naming the parameter, 404 for a model that is not served.
 */
export function readChatRequest(text: string, headers: IncomingHttpHeaders): ChatRequest {
  const body = parseBody(text);
  if (typeof body.model !== 'string') {
    throw invalidParameter('model', "'model' is required and must be a string.");
  }
  const stream = readBoolean(body, 'stream') ?? false;
  checkSampling(body);
  return {
    model: findModel(body.model, 'chat'),
    messages: readMessages(body.messages),
    stream,
    includeUsage: readIncludeUsage(body, stream),
    maximumTokens:
      readNumber(body, 'max_completion_tokens', 1, Number.MAX_SAFE_INTEGER, true) ??
      readNumber(body, 'max_tokens', 1, Number.MAX_SAFE_INTEGER, true) ??
      Number.POSITIVE_INFINITY,
    stop: readStop(body.stop),
    choices: readNumber(body, 'n', 1, 128, true) ?? 1,
    seed: readNumber(body, 'seed', -(2 ** 63), 2 ** 63, true) ?? 0,
    topLogprobs: readTopLogprobs(body),
    tools: readTools(body),
    responseFormat: readResponseFormat(body.response_format),
    reasoningEffort: readString(body, 'reasoning_effort') ?? 'medium',
    testId: readTestId(body),
    options: limitFault(readRequestOptions(body.sandbox, headers['x-sandbox']), chatFaults),
  };
}

function checkSampling(body: JsonObject): void {
  readNumber(body, 'temperature', 0, 2);
  readNumber(body, 'top_p', 0, 1);
  readNumber(body, 'frequency_penalty', -2, 2);
  readNumber(body, 'presence_penalty', -2, 2);
  if (!isAbsent(body.logit_bias) && !isObject(body.logit_bias)) {
    throw invalidParameter('logit_bias', "'logit_bias' must be an object.");
  }
}

function readIncludeUsage(body: JsonObject, stream: boolean): boolean {
  const options = body.stream_options;
  if (isAbsent(options)) return false;
  if (!isObject(options)) throw invalidParameter('stream_options', "'stream_options' must be an object.");
  if (!stream) {
    throw invalidParameter('stream_options', "'stream_options' is only allowed when 'stream' is enabled.");
  }
  return readBoolean(options, 'include_usage', 'stream_options.') ?? false;
}

function readTopLogprobs(body: JsonObject): number | undefined {
  const count = readNumber(body, 'top_logprobs', 0, 20, true);
  if (readBoolean(body, 'logprobs') === true) return count ?? 0;
  if (count !== undefined) {
    throw invalidParameter('top_logprobs', "'top_logprobs' is only allowed when 'logprobs' is enabled.");
  }
  return undefined;
}

function readResponseFormat(format: unknown): ResponseFormat {
  const name = 'response_format';
  if (isAbsent(format)) return { type: 'text' };
  if (!isObject(format)) throw invalidParameter(name, `'${name}' must be an object.`);
  if (format.type === 'text' || format.type === 'json_object') return { type: format.type };
  if (format.type !== 'json_schema') {
    throw invalidParameter(`${name}.type`, `'${name}.type' must be one of text, json_object, json_schema.`);
  }
  const wrapper = format.json_schema;
  if (!isObject(wrapper) || typeof wrapper.name !== 'string') {
    throw invalidParameter(`${name}.json_schema`, `'${name}.json_schema' must be an object with a 'name'.`);
  }
  return { type: 'json_schema', schema: wrapper.schema ?? {} };
}

function readTestId(body: JsonObject): string | null {
  if (!isAbsent(body.metadata) && !isObject(body.metadata)) {
    throw invalidParameter('metadata', "'metadata' must be an object.");
  }
  const user = readString(body, 'user') ?? null;
  const testId = isObject(body.metadata) ? body.metadata.test_id : undefined;
  return typeof testId === 'string' ? testId : user;
}

function readBoolean(body: JsonObject, name: string, parent = ''): boolean | undefined {
  const value = body[name];
  if (isAbsent(value)) return undefined;
  if (typeof value === 'boolean') return value;
  throw invalidParameter(parent + name, `'${parent}${name}' must be a boolean.`);
}

function readString(body: JsonObject, name: string): string | undefined {
  const value = body[name];
  if (isAbsent(value)) return undefined;
  if (typeof value === 'string') return value;
  throw invalidParameter(name, `'${name}' must be a string.`);
}

function readNumber(
  body: JsonObject,
  name: string,
  minimum: number,
  maximum: number,
  integer = false,
): number | undefined {
  const value = body[name];
  if (isAbsent(value)) return undefined;
  const valid = typeof value === 'number' && value >= minimum && value <= maximum;
  if (valid && (!integer || Number.isInteger(value))) return value;
  throw invalidParameter(
    name,
    `'${name}' must be ${integer ? 'an integer' : 'a number'} between ${minimum} and ${maximum}.`,
  );
}
