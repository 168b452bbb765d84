import { type ChatRequest, cacheAffinity, chatRequest } from '../../../shared/capabilities/chat.ts';
import { mayBeInexact, parseExact, stringifyExact } from '../../../shared/capabilities/exact-json.ts';
import { givenChatFields } from '../../../shared/vendors/field-support.ts';
import { parseJson, rawJsonOf, requestText } from '../../http/body/parse-json.ts';
import type { Check } from '../../pipeline/endpoint.ts';
import type { Parse } from '../../pipeline/parsed-request.ts';
import {
  type ChatFieldRequirements,
  checkChatFields,
  checkModelLimits,
  extentOf,
  feeExtent,
  InputMedia,
  type ModelLimits,
  readModelLimits,
  reasoningExtent,
} from '../../pipeline/request-extent.ts';
import { invalidParameter, leaveOutNulls, readRequestFields, requestTags } from '../../pipeline/request-fields.ts';
import type { RequestText } from '../../pipeline/request-text.ts';
import { chatExtras, vendorFacts } from '../../pipeline/vendor-facts.ts';
import { type CompletionViewOptions, forwardedStreamOptions } from '../completions/completion-view.ts';

/** Facts of a chat to check against the model's row. */
export interface ChatRequirements extends ChatFieldRequirements {
  readonly limits: ModelLimits;
}

/** Parses `POST /v1/chat/completions`. */
export const parseChat: Parse<ChatRequirements, CompletionViewOptions> = (body) => {
  const input = readRequestFields(chatRequest, parseJson(body));
  const { model, stream, stream_options: streamOptions, ...request } = input;
  const job = { ...forwardedStreamOptions(streamOptions), ...request };
  const { hasMedia, fields, media } = readMessages(input.messages);
  const given = givenChatFields(job);
  const most = { max_completion_tokens: input.max_completion_tokens, max_tokens: input.max_tokens };
  return {
    model,
    stream: stream === true,
    request: withExactSchemas(requestText(job), job, body),
    hasMedia,
    affinity: cacheAffinity(input.prompt_cache_key, input.messages),
    viewOptions: { includeUsage: streamOptions?.include_usage === true },
    ...requestTags(input.metadata),
    ...vendorFacts(job, chatExtras(given, job)),
    extent: {
      ...extentOf(largest(most.max_completion_tokens, most.max_tokens), input.n),
      ...media.extent,
      ...feeExtent(input),
      ...reasoningExtent(input),
    },
    requirements: {
      chatFields: [...given, ...fields],
      limits: readModelLimits('messages', input.messages, most),
    },
  };
};

/** Checks a parsed chat against a model's row. */
export const checkChat: Check<ChatRequirements> = ({ requirements }, model, unsupported) => {
  if (model.legacyCompletions) {
    throw invalidParameter(
      'model',
      `The model \`${model.id}\` is not a chat model, so it cannot be used with /v1/chat/completions: use /v1/completions.`,
    );
  }
  checkModelLimits(requirements.limits, model);
  return checkChatFields(requirements, model, unsupported);
};

/** The request with the integers of its schemas as their caller wrote them: ids of 64 bits in an enum, or the bounds of such. */
function withExactSchemas(
  text: RequestText,
  job: Pick<Partial<ChatRequest>, 'tools' | 'response_format'>,
  body: Uint8Array,
): RequestText {
  const schemas = [job.tools, job.response_format].filter((value) => value !== undefined);
  if (schemas.length === 0) return text;
  const mayBeRounded = typeof text === 'string' ? mayBeInexact.test(text) : schemas.some(mayHaveLostDigits);
  if (!mayBeRounded) return text;
  const exact = parseJson(body, parseExact);
  leaveOutNulls(chatRequest, exact);
  const { tools, response_format: format } = exact;
  return stringifyExact({
    ...job,
    ...(tools !== undefined && { tools }),
    ...(format !== undefined && { response_format: format }),
  });
}

/** Long fields of a large request are in it as their caller wrote them. */
function mayHaveLostDigits(schemas: object): boolean {
  return rawJsonOf(schemas) === undefined && mayBeInexact.test(JSON.stringify(schemas));
}

/** Vendors differ in which of the two names they know or prefer, so the larger limit counts. */
function largest(one: number | null | undefined, other: number | null | undefined): number | undefined {
  return one == null || other == null ? (one ?? other ?? undefined) : Math.max(one, other);
}

/** Whether messages contain data (rather than links), and which of their fields not every vendor supports. */
function readMessages(messages: ChatRequest['messages']): {
  hasMedia: boolean;
  fields: Set<string>;
  media: InputMedia;
} {
  const fields = new Set<string>();
  const media = new InputMedia();
  let hasMedia = false;
  for (const message of messages) {
    if (message.name != null) fields.add('messages.name');
    if (!Array.isArray(message.content)) continue;
    for (const part of message.content) {
      switch (part.type) {
        case 'image_url':
          hasMedia ||= /^data:/i.test(part.image_url.url);
          media.addImage(part.image_url.url);
          fields.add('messages.content.image_url');
          if (isDetail(part.image_url.detail)) fields.add('messages.content.image_url.detail');
          break;
        case 'input_audio':
          hasMedia = true;
          fields.add('messages.content.input_audio');
          break;
        case 'file':
          hasMedia ||= part.file.file_data !== undefined;
          media.addDocument(part.file.file_data);
          fields.add('messages.content.file');
          break;
        default:
      }
    }
  }
  return { hasMedia, fields, media };
}

function isDetail(detail: unknown): boolean {
  return detail != null && detail !== 'auto';
}
