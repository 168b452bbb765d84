import { createHash } from 'node:crypto';
import {
  type MessageInput,
  type MessageRequest,
  messageCountRequest,
  messageRequest,
} from '../../../shared/capabilities/message.ts';
import { givenChatFields } from '../../../shared/catalogue/chat-fields.ts';
import { ApiError } from '../../../shared/errors.ts';
import { parseJson } from '../../http/body/parse-json.ts';
import { chatExtras, vendorFacts } from '../../pipeline/billed-extras.ts';
import { InputMedia } from '../../pipeline/input-media.ts';
import { invalidParameter } from '../../pipeline/invalid-request.ts';
import { type ModelLimits, readModelLimits } from '../../pipeline/model-limits.ts';
import type { Parse } from '../../pipeline/parsed-request.ts';
import { extentOf, feeExtent } from '../../pipeline/request-extent.ts';
import { readRequestFields } from '../../pipeline/request-fields.ts';
import { requestTags } from '../../pipeline/request-tags.ts';
import { cacheMark, type MessageNotes } from './message-content.ts';
import { toChatTools } from './message-tools.ts';
import { toChatTurns } from './message-turns.ts';

/** What `checkMessages` validates against the model's row: names of what a request holds beyond a chat. */
export interface MessageRequirements {
  /** What is left out whatever the model is. */
  readonly ignored: readonly string[];
  /** What is left out where the vendor refuses fields that it does not know. */
  readonly hints: readonly string[];
  /** What is left out where the vendor does not know Anthropic's own words for it. */
  readonly foreign: readonly string[];
  /** What is left out where the model does not reason. */
  readonly effort: readonly string[];
  /** Fields of the chat that it becomes. */
  readonly chatFields: readonly string[];
  /** Left out where nothing is to be generated. */
  readonly limits?: ModelLimits;
}

/** What the view of a message needs of its request. */
export interface MessageViewOptions {
  /** The caller does not want to see the model's thinking. */
  readonly hidesThinking: boolean;
  /** The caller has not asked for thinking: only what is signed is shown, as the next turn is to bring it back. */
  readonly hidesUnsigned?: boolean;
  /** Where it is hidden: its signatures are shown all the same, since the next turn is to bring them back. */
  readonly keepsSignatures?: boolean;
  readonly stopSequences: readonly string[];
}

/**
 * Parses `POST /v1/messages`: the job is a chat. Unknown fields pass through to the vendor, as with chats.
 *
 * - `thinking` and `output_config` go along as they are, for the vendors whose words they are, and become `reasoning_effort`
 *   for the others: an effort as it is (`max` is `xhigh`), else a budget of up to 4,095 tokens low, of up to 16,383 medium,
 *   above that high; `disabled` is none, `adaptive` the model's own default.
 * - `metadata.user_id` becomes `user`: where it is longer than the 64 characters that OpenAI takes, its SHA-256.
 */
export const parseMessages: Parse<MessageRequirements, MessageViewOptions> = (body) => {
  const input = readRequestFields(messageRequest, parseJson(body));
  refuseForeignFields(input);
  const notes = newNotes();
  const chat = { ...passedOn(input, notes), ...toChat(input, notes), ...chatParameters(input, notes) };
  const { thinking } = input;
  const isOmitted = thinking != null && 'display' in thinking && thinking.display === 'omitted';
  const viewOptions: MessageViewOptions = {
    hidesThinking: isOmitted || thinking?.type === 'disabled',
    ...(thinking == null && { hidesUnsigned: true }),
    keepsSignatures: isOmitted,
    stopSequences: input.stop_sequences ?? [],
  };
  return {
    model: input.model,
    stream: input.stream === true,
    request: JSON.stringify(chat),
    hasMedia: notes.hasMedia,
    viewOptions,
    ...requestTags(input.metadata),
    extent: { ...extentOf(input.max_tokens), ...notes.media.extent, ...feeExtent(input.web_search_options) },
    ...vendorFacts(chat, chatExtras(givenChatFields(chat as Record<string, unknown>), chat as Record<string, unknown>)),
    requirements: {
      ...requirementsOf(input, notes, chat),
      limits: readModelLimits('messages', input.messages, { max_tokens: input.max_tokens }),
    },
  };
};

/** Parses `POST /v1/messages/count_tokens`: the chat whose tokens are to be counted. */
export const parseMessageCount: Parse<MessageRequirements> = (body) => {
  const input = readRequestFields(messageCountRequest, parseJson(body));
  const notes = newNotes();
  const chat = toChat(input, notes);
  const { model } = input;
  return {
    ...{ model, stream: false, request: JSON.stringify(chat), viewOptions: {} },
    hasMedia: notes.hasMedia,
    // Nothing is said, and the chat is not had.
    extent: { ...extentOf(0), ...notes.media.extent, ...feeExtent(undefined, 0) },
    ...vendorFacts(chat, []),
    requirements: requirementsOf(input, notes, chat),
  };
};

function newNotes(): MessageNotes {
  return { ignored: new Set(), hints: new Set(), hasMedia: false, media: new InputMedia() };
}

function requirementsOf(input: MessageInput, notes: MessageNotes, chat: object): MessageRequirements {
  const effort = toEffort(input);
  const from = effort === undefined ? [] : [input.output_config?.effort == null ? 'thinking' : 'output_config.effort'];
  // OpenAI's older models reason always, and refuse to be told not to.
  if (effort === 'none') notes.hints.add('thinking');
  // Whoever does not know these two gets what stands in for them.
  const { thinking: _, output_config: __, ...others } = chat as Record<string, unknown>;
  const chatFields = givenChatFields(others);
  return {
    ignored: [...notes.ignored],
    hints: [...notes.hints],
    foreign: foreignWords(input),
    effort: from,
    chatFields,
  };
}

/** What of a model's thinking and answer no effort and no format can say. */
function foreignWords({ thinking, output_config: config }: MessageInput): string[] {
  const { effort: _, format: __, ...others } = config ?? {};
  return [
    ...(thinking?.type === 'between_tools' ? ['thinking'] : []),
    ...(Object.values(others).some((value) => value !== null) ? ['output_config'] : []),
  ];
}

/** The part of a request that counts as input. */
function toChat(input: MessageInput, notes: MessageNotes): object {
  const format = input.output_config?.format ?? input.output_format;
  const effort = toEffort(input);
  return {
    ...toChatTools(input, notes),
    messages: toChatTurns(input, notes),
    ...ownWords(input),
    ...(effort !== undefined && { reasoning_effort: effort }),
    ...(format != null && {
      response_format: { type: 'json_schema', json_schema: { name: 'output', schema: format.schema, strict: true } },
    }),
    ...cacheMark(input, notes),
  };
}

/** All but the format, which a chat has, too. */
function ownWords({ thinking, output_config: config }: MessageInput): object {
  const { format: _, ...output } = config ?? {};
  return {
    ...(thinking != null && { thinking }),
    ...(Object.keys(output).length > 0 && { output_config: output }),
  };
}

function toEffort({ thinking, output_config: output }: MessageInput): string | undefined {
  if (thinking?.type === 'disabled') return 'none';
  if (output?.effort != null) return output.effort === 'max' ? 'xhigh' : output.effort;
  if (thinking?.type !== 'enabled') return undefined;
  const budget = thinking.budget_tokens;
  return budget < 4096 ? 'low' : budget < 16_384 ? 'medium' : 'high';
}

/** The other parameters that a chat knows by other names. */
function chatParameters(input: MessageRequest, notes: MessageNotes): object {
  const { stop_sequences: stop, metadata, service_tier: tier } = input;
  const { user_id: user, ...others } = metadata ?? {};
  if (Object.keys(others).length > 0) notes.ignored.add('metadata');
  if (input.top_k != null) notes.hints.add('top_k');
  return {
    // The newer of its two names: OpenAI's reasoning models take no other.
    max_completion_tokens: input.max_tokens,
    ...(stop != null && stop.length > 0 && { stop }),
    ...(user != null && { user: user.length <= 64 ? user : createHash('sha256').update(user).digest('hex') }),
    ...(tier != null && { service_tier: tier === 'standard_only' ? 'default' : 'auto' }),
  };
}

/** What Anthropic does at its own place, and an answer without it would be another one. */
const servedElsewhere = ['container', 'mcp_servers', 'thread', 'inference_geo'];

/** Fields that the chat has under other names, or must not have. */
const translated = new Set([
  ...['model', 'stream', 'messages', 'system', 'tools', 'tool_choice', 'thinking', 'output_config', 'output_format'],
  ...['cache_control', 'max_tokens', 'metadata', 'service_tier', 'stop_sequences', ...servedElsewhere],
]);

/** Hints to Anthropic's own servers: how to keep a long context small, whom to ask instead, what to diagnose. */
const serverHints = new Set([
  ...['context_management', 'compaction', 'diagnostics', 'speed', 'fallbacks', 'fallback_credit_token'],
  'billing_policy',
]);

/** The fields that a chat has by the same name, and those that nobody here knows. */
function passedOn(input: MessageRequest, notes: MessageNotes): Record<string, unknown> {
  const kept: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(input)) {
    if (value === null || translated.has(name)) continue;
    if (serverHints.has(name)) notes.ignored.add(name);
    else kept[name] = value;
  }
  return kept;
}

/** Fields of a chat that ask for what a message cannot show, or that the gateway sets itself. */
const chatFields = [
  ...['n', 'functions', 'function_call', 'modalities', 'audio', 'logprobs', 'top_logprobs', 'stream_options'],
  'max_completion_tokens',
];

/** @throws ApiError 400 that names the field. */
function refuseForeignFields(input: MessageRequest): void {
  const isGiven = (name: string): boolean => {
    const value = input[name];
    const isEmpty = value == null || (Array.isArray(value) && value.length === 0);
    return !isEmpty && !(name === 'inference_geo' && value === 'global');
  };
  const elsewhere = servedElsewhere.find(isGiven);
  if (elsewhere !== undefined) throw notOffered(elsewhere);
  const foreign = chatFields.find(isGiven);
  if (foreign !== undefined) throw invalidParameter(foreign, `'${foreign}' is not a parameter of this endpoint.`);
}

/** Anthropic's clients begin a thread unasked, and go on without one only where these details say that there is none. */
function notOffered(param: string): ApiError {
  const details = { error_code: 'thread_unsupported_request', unsupported: [param] };
  return new ApiError('invalid_request_error', `'${param}' is not offered by this gateway.`, {
    param,
    ...(param === 'thread' && { details }),
  });
}
