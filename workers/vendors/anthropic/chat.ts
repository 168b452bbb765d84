import { ApiError } from '../../../shared/errors.ts';
import type { HttpClient } from '../../http/http-client.ts';
import { callInPlace } from '../support/delta-stream.ts';
import type { VendorMethod } from '../vendor.ts';
import { readMessage, toHeldAnswer } from './answer.ts';
import type { AnthropicErrors } from './errors.ts';
import { requestAfterRefusal } from './refusals.ts';
import { betaHeaders, toCountRequest, toMessageRequest } from './request.ts';
import { AnthropicStream } from './stream.ts';

/** Chats as messages (https://docs.anthropic.com/en/api/messages). */
export function anthropicChat(http: HttpClient, errors: AnthropicErrors): VendorMethod {
  const chat: VendorMethod = async (call, sink) => {
    const { signal, silenceMs, beginsWithCounts, holder } = call;
    const body = toMessageRequest(call);
    const request = { path: '/messages', body, signal, silenceMs, holder, ...betaHeaders(body) };
    let stream: AnthropicStream | undefined;
    try {
      if (!call.stream) {
        const text = await post(http, errors, request);
        return toHeldAnswer(readMessage(errors.answer(text)));
      }
      const events = new AnthropicStream(errors, sink, { beginsWithCounts });
      stream = events;
      if (call.run) call.run.openAnswer = events;
      const text = await http.post({ ...request, onChunk: (bytes) => events.read(bytes) });
      if (text !== null) events.writeMessage(text);
      return events.end();
    } catch (thrown) {
      return await chat(callInPlace(thrown, stream, call, requestAfterRefusal), sink);
    }
  };
  return chat;
}

/** The input tokens of a chat (https://docs.anthropic.com/en/api/messages-count-tokens). */
export function anthropicTokenCount(http: HttpClient, errors: AnthropicErrors): VendorMethod {
  return async (call) => {
    const { signal, silenceMs } = call;
    const body = toCountRequest(call);
    const text = await post(http, errors, {
      ...{ path: '/messages/count_tokens', body, signal, silenceMs },
      ...betaHeaders(body),
    });
    const { input_tokens: tokens } = errors.answer(text);
    if (!Number.isInteger(tokens)) {
      throw new ApiError('server_error', "The model's vendor answered without a count of tokens.");
    }
    return { body: JSON.stringify({ input_tokens: tokens }), usage: null };
  };
}

async function post(
  http: HttpClient,
  errors: AnthropicErrors,
  request: Parameters<HttpClient['post']>[0],
): Promise<string> {
  try {
    return (await http.post(request)) ?? '';
  } catch (error) {
    throw errors.of(error);
  }
}
