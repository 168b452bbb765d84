import type { NativeResponseEnd } from '../../../shared/capabilities/response.ts';
import { ApiError } from '../../../shared/errors.ts';
import type { HttpClient } from '../../http/http-client.ts';
import { requestText } from '../request-body.ts';
import { isObject, type JsonObject } from '../support/json-object.ts';
import type { VendorAnswer, VendorMethod } from '../vendor.ts';
import type { OpenAiAnswerReader } from './answer-reader.ts';
import { composeResponseRequest, withoutEncryptedReasoning } from './response-request.ts';
import { OpenAiResponseStream, readResponse } from './response-stream.ts';

/** The Responses API (https://platform.openai.com/docs/api-reference/responses). */
export function openAiResponses(http: HttpClient, answerReader: OpenAiAnswerReader): VendorMethod {
  const respond = responseMethod(http, answerReader);
  return async (call, sink) => {
    try {
      return await respond(call, sink);
    } catch (error) {
      // Only the account that encrypted it can read it, and the next turn of a conversation may be another's.
      const isUnreadable = error instanceof ApiError && error.vendorCode === 'invalid_encrypted_content';
      const request = isUnreadable ? withoutEncryptedReasoning(requestText(call.request)) : undefined;
      if (request === undefined) throw error;
      return await respond({ ...call, request }, sink);
    }
  };
}

function responseMethod(http: HttpClient, answerReader: OpenAiAnswerReader): VendorMethod {
  return async (call, sink) => {
    const { signal, silenceMs, holder } = call;
    const request = { path: '/responses', body: composeResponseRequest(call), signal, silenceMs, holder };
    if (!call.stream) {
      const text = await http.post(request);
      return endOf(readResponse(answerReader, answerReader.answer(text ?? '')));
    }
    const stream = new OpenAiResponseStream(answerReader, sink);
    try {
      const text = await http.post({ ...request, onChunk: (bytes) => stream.read(bytes) });
      if (text !== null) {
        // An error under a status of success is reported as such.
        readResponse(answerReader, answerReader.answer(text));
        throw new ApiError('server_error', "The model's vendor answered a request for a stream without one.");
      }
      return endOf(stream.end());
    } catch (error) {
      throw stream.failure(error);
    }
  };
}

/** Fields of OpenAI's `Response` that the gateway sets itself, or that repeat the request. */
const notTheVendors: ReadonlySet<string> = new Set([
  ...['id', 'object', 'created_at', 'completed_at', 'model', 'error', 'output_text', 'billing'],
  ...['background', 'store', 'previous_response_id', 'conversation', 'prompt', 'instructions', 'input'],
  ...['tools', 'tool_choice', 'parallel_tool_calls', 'max_tool_calls', 'max_output_tokens', 'truncation'],
  ...['reasoning', 'reasoning_effort', 'text', 'temperature', 'top_p', 'top_logprobs'],
  ...['frequency_penalty', 'presence_penalty', 'metadata', 'user', 'safety_identifier'],
  ...['prompt_cache_key', 'prompt_cache_retention', 'prompt_cache_options', 'context_management'],
]);

function endOf(answer: JsonObject): VendorAnswer {
  const kept = Object.entries(answer).filter(([name]) => !notTheVendors.has(name));
  const usage = isObject(answer.usage) ? answer.usage : null;
  const response = {
    ...Object.fromEntries(kept),
    incomplete_details: isObject(answer.incomplete_details) ? answer.incomplete_details : null,
    usage,
  } as NativeResponseEnd['response'];
  return { body: JSON.stringify({ response } satisfies NativeResponseEnd), usage, tier: answer.service_tier };
}
