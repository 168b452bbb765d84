import { type ChatRequest, chatRequest } from '../../shared/capabilities/chat.ts';
import { invalidRequest } from './invalid-request.ts';
import { parseJson } from './parse-json.ts';
import type { Prepare } from './prepared-request.ts';
import { forwardedStreamOptions } from './stream-options.ts';

/** Prepares `POST /v1/chat/completions`. The view option `includeUsage` asks for usage at the end of a stream. */
export const prepareChat: Prepare = (body) => {
  const input = parseJson(body);
  if (!chatRequest.validate(input)) throw invalidRequest(chatRequest, input);
  const { model, stream, stream_options: streamOptions, ...request } = input;
  return {
    model,
    stream: stream === true,
    request: JSON.stringify({ ...forwardedStreamOptions(streamOptions), ...request }),
    hasMedia: input.messages.some(hasMedia),
    viewOptions: { includeUsage: streamOptions?.include_usage === true },
  };
};

/** Whether a message holds data itself; a link to an image is none. */
function hasMedia({ content }: ChatRequest['messages'][number]): boolean {
  if (!Array.isArray(content)) return false;
  return content.some((part) => {
    switch (part.type) {
      case 'image_url':
        return /^data:/i.test(part.image_url.url);
      case 'input_audio':
        return true;
      case 'file':
        return part.file.file_data !== undefined;
      default:
        return false;
    }
  });
}
