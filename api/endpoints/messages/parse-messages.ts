import { createHash } from 'node:crypto';
import { cacheAffinity } from '../../../shared/capabilities/chat.ts';
import { parseExact, stringifyExact } from '../../../shared/capabilities/exact-json.ts';
import { flatToolName } from '../../../shared/capabilities/flat-tool-name.ts';
import {
  type MessageInput,
  type MessageRequest,
  messageCountRequest,
  messageRequest,
} from '../../../shared/capabilities/message.ts';
import { ApiError } from '../../../shared/errors.ts';
import { givenChatFields } from '../../../shared/vendors/field-support.ts';
import { parseJson } from '../../http/body/parse-json.ts';
import type { Parse } from '../../pipeline/parsed-request.ts';
import {
  extentOf,
  feeExtent,
  InputMedia,
  type ModelLimits,
  readModelLimits,
  reasoningExtent,
} from '../../pipeline/request-extent.ts';
import { invalidParameter, readRequestFields, requestTags } from '../../pipeline/request-fields.ts';
import { assertFew, chatExtras, vendorFacts } from '../../pipeline/vendor-facts.ts';
import { cacheMark, type MessageNotes } from './message-content.ts';
import { toChatTools } from './message-tools.ts';
import { toChatTurns } from './message-turns.ts';

/** Names of fields without an equivalent in a chat, which `checkMessages` checks against the model's row. */
export interface MessageRequirements {
  /** Omitted for all models. */
  readonly ignored: readonly string[];
  /** Omitted if the vendor refuses unknown fields. */
  readonly hints: readonly string[];
  /** Omitted if the vendor does not support Anthropic's fields. */
  readonly foreign: readonly string[];
  /** Omitted if the model does not reason. */
  readonly effort: readonly string[];
  /** Fields of the resulting chat. */
  readonly chatFields: readonly string[];
  /** Path of the first document that is given as a link, if there is one. */
  readonly linkedDocument?: string | undefined;
  /** Undefined if nothing is to be generated. */
  readonly limits?: ModelLimits;
}

/** View options of a message. */
export interface MessageViewOptions {
  /** Whether the caller disabled or hid the model's thinking. */
  readonly hidesThinking: boolean;
  /** The caller did not request thinking: only signed thinking is shown, as the next turn should return it. */
  readonly hidesUnsigned?: boolean;
  /** Shows signatures of hidden thinking, since the next turn should return them. */
  readonly keepsSignatures?: boolean;
  readonly stopSequences: readonly string[];
  /** Names of tools that are too long for a chat: vendors may know the tools under their flat names. */
  readonly longNames?: readonly string[];
}

/**
 * Parses `POST /v1/messages`: the job is a chat. Unknown fields pass through to the vendor, as with chats.
 *
 * - `thinking` and `output_config` are kept for vendors that support them, and become `reasoning_effort` for the others: an
 *   effort unchanged (`max` is `xhigh`), else a budget of up to 4,095 tokens low, of up to 16,383 medium, above that high;
 *   `disabled` is none, `adaptive` the model's default.
 * - `metadata.user_id` becomes `user`: its SHA-256 if it is longer than the 64 characters that OpenAI accepts.
 */
export const parseMessages: Parse<MessageRequirements, MessageViewOptions> = (body) => {
  const input = readRequestFields(messageRequest, parseJson(body, parseExact));
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
    ...longToolNames(chat),
  };
  return {
    model: input.model,
    stream: input.stream === true,
    request: stringifyExact(chat),
    hasMedia: notes.hasMedia,
    affinity: cacheAffinity(undefined, input.messages, input.system),
    viewOptions,
    ...requestTags(input.metadata),
    extent: { ...extentOf(input.max_tokens), ...notes.media.extent, ...feeExtent(input), ...reasoningExtent(chat) },
    ...vendorFacts(chat, chatExtras(givenChatFields(chat as Record<string, unknown>), chat as Record<string, unknown>)),
    // Also where the chat has no room for it.
    ...(notes.hints.has('cache_control') && { marksCache: true }),
    requirements: {
      ...requirementsOf(input, notes, chat),
      limits: readModelLimits('messages', input.messages, { max_tokens: input.max_tokens }),
    },
  };
};

/** Parses `POST /v1/messages/count_tokens`: the chat whose tokens are counted. */
export const parseMessageCount: Parse<MessageRequirements> = (body) => {
  const input = readRequestFields(messageCountRequest, parseJson(body, parseExact));
  const notes = newNotes();
  const chat = toChat(input, notes);
  const { model } = input;
  // Nothing is billed for a count.
  const { extras: _, ...facts } = vendorFacts(chat, []);
  return {
    ...{ model, stream: false, request: stringifyExact(chat), viewOptions: {} },
    hasMedia: notes.hasMedia,
    // No output is generated, and the chat itself is not run.
    extent: { ...extentOf(0), ...notes.media.extent, ...feeExtent({}, 0) },
    ...facts,
    requirements: requirementsOf(input, notes, chat),
  };
};

/** The tools with names that a chat may not have, and that differ from their flat names. */
function longToolNames(chat: object): { readonly longNames?: readonly string[] } {
  const { tools = [] } = chat as { readonly tools?: readonly { readonly function: { readonly name: string } }[] };
  const names = tools.map((tool) => tool.function.name);
  const long = names.filter((name) => flatToolName(undefined, name) !== name);
  assertFew(long, 'tools with long names', 'tools');
  return long.length === 0 ? {} : { longNames: long };
}

function newNotes(): MessageNotes {
  return { ignored: new Set(), hints: new Set(), hasMedia: false, media: new InputMedia(), linksDocument: false };
}

function requirementsOf(input: MessageInput, notes: MessageNotes, chat: object): MessageRequirements {
  const effort = toEffort(input);
  const from = effort === undefined ? [] : [input.output_config?.effort == null ? 'thinking' : 'output_config.effort'];
  // OpenAI's older models always reason, and refuse to disable it.
  if (effort === 'none') notes.hints.add('thinking');
  // Vendors without these two get their replacements.
  const { thinking: _, output_config: __, ...others } = chat as Record<string, unknown>;
  const chatFields = givenChatFields(others);
  return {
    ignored: [...notes.ignored],
    hints: [...notes.hints],
    foreign: foreignWords(input),
    effort: from,
    chatFields,
    ...(notes.linksDocument && { linkedDocument: findLink(input.messages, 'messages') }),
  };
}

/** Path of the first link to a document in a list of turns, or of blocks. */
function findLink(list: unknown, path: string): string | undefined {
  if (!Array.isArray(list)) return undefined;
  for (const [index, { type, source, content }] of list.entries()) {
    const at = `${path}[${index}]`;
    if (type === 'document' && source.type === 'url') return `${at}.source.type`;
    const inner = findLink(content, `${at}.content`);
    if (inner !== undefined) return inner;
  }
  return undefined;
}

/** Settings of thinking and output that neither an effort nor a format can express. */
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

/** Everything except the format, which a chat has, too. */
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

/** The other parameters that a chat has under different names. */
function chatParameters(input: MessageRequest, notes: MessageNotes): object {
  const { stop_sequences: stop, metadata, service_tier: tier } = input;
  const { user_id: user, ...others } = metadata ?? {};
  if (Object.keys(others).length > 0) notes.ignored.add('metadata');
  if (input.top_k != null) notes.hints.add('top_k');
  return {
    // The newer of its two names: OpenAI's reasoning models accept no other.
    max_completion_tokens: input.max_tokens,
    ...(stop != null && stop.length > 0 && { stop }),
    ...(user != null && { user: user.length <= 64 ? user : createHash('sha256').update(user).digest('hex') }),
    ...(tier != null && { service_tier: tier === 'standard_only' ? 'default' : 'auto' }),
  };
}

/** Features that only Anthropic itself provides, and that change the answer. */
const servedElsewhere = ['container', 'mcp_servers', 'thread', 'inference_geo'];

/** Fields that the chat has under other names, or must not have. */
const translated = new Set([
  ...['model', 'stream', 'messages', 'system', 'tools', 'tool_choice', 'thinking', 'output_config', 'output_format'],
  ...['cache_control', 'max_tokens', 'metadata', 'service_tier', 'stop_sequences', ...servedElsewhere],
]);

/** Hints for Anthropic's own servers: how to compact a long context, fallbacks, diagnostics. */
const serverHints = new Set([
  ...['context_management', 'compaction', 'diagnostics', 'speed', 'fallbacks', 'fallback_credit_token'],
  'billing_policy',
]);

/** Fields with the same name in a chat, and unknown ones. */
function passedOn(input: MessageRequest, notes: MessageNotes): Record<string, unknown> {
  const kept: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(input)) {
    if (value === null || translated.has(name)) continue;
    if (serverHints.has(name)) notes.ignored.add(name);
    else kept[name] = value;
  }
  return kept;
}

/** Chat fields that request what a message cannot show, that the gateway sets itself, or that a message has in another form. */
const chatFields = [
  ...['n', 'functions', 'function_call', 'modalities', 'audio', 'logprobs', 'top_logprobs', 'stream_options'],
  ...['max_completion_tokens', 'stop', 'response_format', 'reasoning_effort', 'parallel_tool_calls'],
];

/** Names of chat fields in a message. */
export const messageFieldNames: Readonly<Record<string, string>> = {
  max_completion_tokens: 'max_tokens',
  stop: 'stop_sequences',
  user: 'metadata.user_id',
  response_format: 'output_config.format',
  reasoning_effort: 'output_config.effort',
  parallel_tool_calls: 'tool_choice',
};

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
  if (foreign === undefined) return;
  const hint = Object.hasOwn(messageFieldNames, foreign) ? `: use '${messageFieldNames[foreign]}'` : '';
  throw invalidParameter(foreign, `'${foreign}' is not a parameter of this endpoint${hint}.`);
}

/** Anthropic's clients start a thread unasked, and only continue without one if these details report that it is unsupported. */
function notOffered(param: string): ApiError {
  const details = { error_code: 'thread_unsupported_request', unsupported: [param] };
  return new ApiError('invalid_request_error', `'${param}' is not offered by this gateway.`, {
    param,
    ...(param === 'thread' && { details }),
  });
}
