import {
  type CompletionRequest,
  completionRequest,
  defaultMaxTokens,
} from '../../../shared/capabilities/completion.ts';
import { givenChatFields } from '../../../shared/vendors/field-support.ts';
import { parseJson, requestText } from '../../http/body/parse-json.ts';
import type { Parse } from '../../pipeline/parsed-request.ts';
import {
  type ChatFieldRequirements,
  extentOf,
  feeExtent,
  type ModelLimits,
  readModelLimits,
  reasoningExtent,
} from '../../pipeline/request-extent.ts';
import { readRequestFields, requestTags } from '../../pipeline/request-fields.ts';
import { completionExtras, vendorFacts } from '../../pipeline/vendor-facts.ts';
import { withoutTags } from '../../pipeline/without-tags.ts';
import { type CompletionViewOptions, forwardedStreamOptions } from './completion-view.ts';

/** Facts of a completion to check against the model's row. */
export interface CompletionRequirements extends ChatFieldRequirements {
  /** The first parameter without an equivalent in a chat. */
  readonly nativeOnly: string | undefined;
  readonly limits: ModelLimits;
}

/** Parses `POST /v1/completions`. */
export const parseCompletion: Parse<CompletionRequirements, CompletionViewOptions> = (body) => {
  const input = readRequestFields(completionRequest, parseJson(body));
  const { model, stream, stream_options: streamOptions, ...given } = withoutTags(input);
  // What is held bounds the answer, whatever its vendor's own default is.
  const request = { max_tokens: defaultMaxTokens, ...given };
  const { prompt: _, ...fields } = request;
  return {
    model,
    stream: stream === true,
    request: requestText({ ...forwardedStreamOptions(streamOptions), ...request }),
    hasMedia: false,
    viewOptions: { includeUsage: streamOptions?.include_usage === true },
    ...requestTags(input.metadata),
    ...vendorFacts(fields, completionExtras(givenChatFields(fields), fields)),
    extent: {
      ...extentOf(request.max_tokens, choices(input as CompletionRequest)),
      chats: promptCount(input as CompletionRequest),
      ...feeExtent(fields, promptCount(input as CompletionRequest)),
      ...reasoningExtent(fields),
    },
    requirements: {
      nativeOnly: nativeOnly(input as CompletionRequest),
      chatFields: chatFields(input as CompletionRequest),
      limits: readModelLimits('prompt', undefined, { max_tokens: (input as CompletionRequest).max_tokens }),
    },
  };
};

/** Number of completions to generate for all prompts, including candidates. */
function choices({ prompt, n, best_of: bestOf }: CompletionRequest): number {
  return promptCount({ prompt }) * Math.max(1, n ?? 1, bestOf ?? 1);
}

function promptCount({ prompt }: Pick<CompletionRequest, 'prompt'>): number {
  return Array.isArray(prompt) && typeof prompt[0] !== 'number' ? prompt.length : 1;
}

/**
 * Chat fields that a completion must not contain: they would override the gateway's (`messages`), or request what a
 * completion cannot show (tools, audio).
 */
const foreignFields = [
  'messages',
  'tools',
  'tool_choice',
  'functions',
  'function_call',
  'modalities',
  'audio',
  'top_logprobs',
  'max_completion_tokens',
];

function nativeOnly(request: CompletionRequest): string | undefined {
  const { prompt, suffix, best_of: bestOf, n, logprobs, echo, max_tokens: maximum } = request;
  const [first] = prompt ?? [null];
  if (typeof first === 'number' || typeof first === 'object') return 'prompt';
  if (suffix) return 'suffix';
  if (bestOf != null && bestOf > (n ?? 1)) return 'best_of';
  if (logprobs != null && echo === true) return 'logprobs';
  if (maximum === 0) return 'max_tokens';
  return foreignFields.find((name) => request[name] != null);
}

/** The chat fields of a completion that is served by a chat. */
function chatFields({ prompt: _prompt, echo: _echo, suffix: _suffix, best_of: _best, ...chat }: CompletionRequest) {
  const { logprobs, stream_options: _options, ...rest } = chat;
  return givenChatFields({ ...rest, ...(logprobs != null && { logprobs: true }) });
}
