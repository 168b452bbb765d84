import type { IncomingHttpHeaders } from 'node:http';
import type { ChatRequest } from '../chat/chat-request.ts';
import type { JsonObject } from '../json-value.ts';
import { findModel, type SandboxModel } from '../models.ts';
import { RequestFields, readCallOptions } from '../request-fields.ts';
import { jsonFaults } from '../request-options.ts';
import { invalidParameter, WireError } from '../wire-error.ts';
import { readInput } from './input-items.ts';
import { unsupportedValue, wrongType } from './request-members.ts';
import { readResponseTools } from './response-tools.ts';
import { readTextFormat } from './text-format.ts';

/** A validated `POST /v1/responses` with its defaults filled in. */
export interface ResponseRequest {
  /** The same request in the sandbox chat's format, from which the answer is planned. */
  chat: ChatRequest;
  forcesSearch: boolean;
  /** Whether the response shows a summary of the reasoning. */
  summarizes: boolean;
  include: ReadonlySet<IncludedPart>;
  /** The members of the response that repeat the request. */
  shown: JsonObject;
}

const includedParts = [
  'file_search_call.results',
  'web_search_call.results',
  'web_search_call.action.sources',
  'message.input_image.image_url',
  'computer_call_output.output.image_url',
  'code_interpreter_call.outputs',
  'reasoning.encrypted_content',
  'message.output_text.logprobs',
] as const;

/** Values of `include`. */
type IncludedPart = (typeof includedParts)[number];

const fieldNames = [
  ...[
    'input',
    'instructions',
    'stream',
    'stream_options',
    'store',
    'background',
    'previous_response_id',
    'conversation',
  ],
  ...['tools', 'tool_choice', 'parallel_tool_calls', 'max_tool_calls', 'max_output_tokens', 'text', 'reasoning'],
  ...['include', 'truncation', 'temperature', 'top_p', 'top_logprobs', 'service_tier', 'prompt_cache_key'],
  ...['prompt_cache_retention', 'safety_identifier', 'client_metadata', 'prompt_cache_options', 'context_management'],
  'moderation',
];

const efforts = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const;
const summaries = ['auto', 'concise', 'detailed'] as const;
const serviceTiers = ['auto', 'default', 'flex', 'scale', 'priority', 'fast', 'ultrafast'] as const;

/**
 * Validates the body as OpenAI does; fields without effect here are validated for type and range only.
 * @throws WireError 400 naming the parameter, 404 for a model that is not served here.
 */
export function readResponseRequest(text: string, headers: IncomingHttpHeaders): ResponseRequest {
  const fields = RequestFields.fromJson(text);
  const model = findResponsesModel(fields.requiredText('model'));
  fields.allowOnly(fieldNames);
  refuseStored(fields);
  const parallel = fields.flag('parallel_tool_calls') ?? true;
  const tools = readResponseTools(fields.raw('tools'), fields.raw('tool_choice'), parallel);
  const { format, shown: shownText } = readTextFormat(fields.object('text'));
  const reasoning = readReasoning(fields);
  if (typeof fields.raw('include') === 'string') throw wrongType('include', 'an array');
  const include = new Set(fields.choices('include', includedParts));
  const instructions = fields.text('instructions');
  const input = readInput(fields.raw('input'));
  const topLogprobs = fields.number('top_logprobs', 0, 20, 'integer') ?? 0;
  const limit = fields.number('max_output_tokens', 16, Number.MAX_SAFE_INTEGER, 'integer');
  const chat: ChatRequest = {
    model: { ...model, reasoning: model.reasoning || reasoning.isAsked },
    messages: instructions === undefined ? input : [{ role: 'developer', content: instructions }, ...input],
    stream: readStream(fields),
    includeUsage: true,
    maximumTokens: limit ?? Number.POSITIVE_INFINITY,
    stop: [],
    choices: 1,
    seed: 0,
    topLogprobs: include.has('message.output_text.logprobs') ? topLogprobs : undefined,
    tools: tools.use,
    responseFormat: format,
    reasoningEffort: reasoning.effort ?? 'medium',
    ...readCallOptions(fields, headers, [...jsonFaults, 'large_event', 'failed_event', 'no_usage']),
  };
  const shown = {
    model: model.id,
    instructions: instructions ?? null,
    max_output_tokens: limit ?? null,
    parallel_tool_calls: parallel,
    reasoning: { effort: reasoning.effort ?? null, summary: reasoning.summary ?? null },
    text: shownText,
    top_logprobs: topLogprobs,
    ...tools.shown,
    ...readPlainFields(fields),
  };
  return { chat, forcesSearch: tools.forcesSearch, summarizes: reasoning.summary !== undefined, include, shown };
}

function findResponsesModel(id: string): SandboxModel {
  const model = findModel(id, 'chat');
  if (model.responses) return model;
  const message = 'This model is only supported in v1/chat/completions and not in v1/responses.';
  throw new WireError(404, message, { param: 'model' });
}

/** Nothing is stored here: requests that need an earlier response, or must be found later, are refused. */
function refuseStored(fields: RequestFields): void {
  const previous = fields.text('previous_response_id');
  if (previous !== undefined) {
    throw new WireError(400, `Previous response with id '${previous.slice(0, 200)}' not found.`, {
      code: 'previous_response_not_found',
      param: 'previous_response_id',
    });
  }
  if (fields.raw('conversation') !== undefined) {
    throw invalidParameter('conversation', 'The sandbox keeps no conversations.');
  }
  for (const name of ['store', 'background']) {
    if (fields.flag(name)) throw invalidParameter(name, `The sandbox keeps no responses: '${name}' must be false.`);
  }
}

function readStream(fields: RequestFields): boolean {
  const stream = fields.flag('stream') ?? false;
  const options = fields.object('stream_options');
  if (options === undefined) return stream;
  if (!stream) {
    throw invalidParameter('stream_options', "'stream_options' is only allowed when 'stream' is enabled.");
  }
  const { include_obfuscation: obfuscates } = options;
  if (obfuscates === undefined || typeof obfuscates === 'boolean') return stream;
  const param = 'stream_options.include_obfuscation';
  throw wrongType(param, 'a boolean');
}

function readReasoning(fields: RequestFields) {
  const reasoning = fields.object('reasoning') ?? {};
  const effort = reasoning.effort ?? undefined;
  const summary = reasoning.summary ?? reasoning.generate_summary ?? undefined;
  const knownEffort = efforts.find((known) => known === effort);
  const knownSummary = summaries.find((known) => known === summary);
  if (effort !== knownEffort) throw unsupportedValue('reasoning.effort', String(effort), efforts);
  if (summary !== knownSummary) throw unsupportedValue('reasoning.summary', String(summary), summaries);
  return { effort: knownEffort, summary: knownSummary, isAsked: (effort ?? summary) !== undefined };
}

/** Members without effect here. */
function readPlainFields(fields: RequestFields): JsonObject {
  for (const name of ['client_metadata', 'prompt_cache_options', 'moderation']) fields.object(name);
  const management = fields.raw('context_management');
  if (management !== undefined && !Array.isArray(management)) throw wrongType('context_management', 'an array');
  fields.choice('service_tier', serviceTiers);
  return {
    temperature: fields.number('temperature', 0, 2) ?? 1,
    top_p: fields.number('top_p', 0, 1) ?? 1,
    truncation: fields.choice('truncation', ['auto', 'disabled']) ?? 'disabled',
    max_tool_calls: fields.number('max_tool_calls', 1, Number.MAX_SAFE_INTEGER, 'integer') ?? null,
    metadata: readMetadata(fields),
    prompt_cache_key: fields.text('prompt_cache_key') ?? null,
    prompt_cache_retention: fields.choice('prompt_cache_retention', ['in_memory', '24h']) ?? null,
    safety_identifier: readSafetyIdentifier(fields),
    user: fields.text('user') ?? null,
    service_tier: 'default',
    background: false,
    previous_response_id: null,
    store: false,
  };
}

function readSafetyIdentifier(fields: RequestFields): string | null {
  return fields.raw('safety_identifier') === undefined ? null : fields.requiredText('safety_identifier', 64);
}

function readMetadata(fields: RequestFields): JsonObject {
  const metadata = fields.object('metadata') ?? {};
  if (Object.keys(metadata).length > 16) {
    throw invalidParameter('metadata', "Invalid 'metadata': at most 16 keys are allowed.");
  }
  for (const [name, value] of Object.entries(metadata)) {
    if (name.length <= 64 && typeof value === 'string' && value.length <= 512) continue;
    const param = `metadata.${name.slice(0, 64)}`;
    throw invalidParameter(
      param,
      `Invalid '${param}': expected a key of at most 64 and a string of at most 512 characters.`,
    );
  }
  return metadata;
}
