import { randomUUID } from 'node:crypto';
import { stringifyExact } from '../../../shared/capabilities/exact-json.ts';
import { ApiError } from '../../../shared/errors.ts';
import type { Downloader } from '../../http/download.ts';
import type { HttpClient } from '../../http/http-client.ts';
import { callInPlace } from '../support/delta-stream.ts';
import type { JsonObject } from '../support/json-object.ts';
import type { VendorAnswer, VendorMethod } from '../vendor.ts';
import type { GeminiAnswerReader } from './answer-reader.ts';
import { isBlocked, readCandidate, toFinishReason, toTier, toUsage } from './candidate.ts';
import { requestAfterRefusal } from './refusals.ts';
import { modelPath, readChatRequest, toGeminiInput, toGeminiRequest } from './request.ts';
import { GeminiStream } from './stream.ts';
import { callersNames } from './tools.ts';

/**
 * Chats (https://ai.google.dev/api/generate-content), translated both ways. A prompt that Gemini blocks yields an empty answer
 * that ends by `content_filter`: the call succeeded, and its prompt is counted.
 */
export function geminiChat(http: HttpClient, reader: GeminiAnswerReader, download: Downloader): VendorMethod {
  const chat: VendorMethod = async (call, sink) => {
    const { model, signal, silenceMs, beginsWithCounts, holder } = call;
    const request = readChatRequest(call);
    const body = stringifyExact(await toGeminiRequest(request, call, download));
    // Gemini cannot be told to make one call at a time. Another one it makes once the first has its result.
    const maxCalls = request.parallel_tool_calls === false ? 1 : Number.POSITIVE_INFINITY;
    const names = callersNames(request);
    let stream: GeminiStream | undefined;
    try {
      if (!call.stream) {
        const text = await http.post({ path: modelPath(model, 'generateContent'), body, signal, silenceMs, holder });
        return toCompletion(reader.answer(text ?? ''), { maxCalls, names });
      }
      const events = new GeminiStream(reader, sink, { maxCalls, beginsWithCounts, names });
      stream = events;
      if (call.run) call.run.openAnswer = events;
      const path = `${modelPath(model, 'streamGenerateContent')}?alt=sse`;
      const text = await http.post({ path, body, signal, silenceMs, holder, onChunk: (bytes) => events.read(bytes) });
      if (text !== null) events.readEvent(text);
      return events.end();
    } catch (thrown) {
      return await chat(callInPlace(thrown, stream, call, requestAfterRefusal), sink);
    }
  };
  return chat;
}

/** The tokens of a chat's input, counted by the model's own tokenizer (https://ai.google.dev/api/tokens). */
export function geminiTokenCount(http: HttpClient, reader: GeminiAnswerReader, download: Downloader): VendorMethod {
  return async (call) => {
    const { model, signal, silenceMs } = call;
    const input = await toGeminiInput(readChatRequest(call), call, download);
    const body = stringifyExact({ generateContentRequest: { model: `models/${model}`, ...input } });
    const text = await http.post({ path: modelPath(model, 'countTokens'), body, signal, silenceMs });
    const { totalTokens } = reader.answer(text ?? '');
    if (typeof totalTokens !== 'number') {
      throw new ApiError('server_error', "The model's vendor answered without a count of tokens.");
    }
    return { body: JSON.stringify({ input_tokens: totalTokens }), usage: null };
  };
}

/** The calls that a choice may have, and the caller's names of their tools by Gemini's. */
interface WantedCalls {
  readonly maxCalls: number;
  readonly names: ReadonlyMap<string, string>;
}

/** A whole answer as a completion. */
function toCompletion(answer: JsonObject, wanted: WantedCalls): VendorAnswer {
  const candidates = Array.isArray(answer.candidates) ? answer.candidates : [];
  const responseId = typeof answer.responseId === 'string' ? answer.responseId : randomUUID();
  const choices = candidates.map((candidate) => toChoice(candidate, responseId, wanted));
  if (choices.length === 0) {
    if (!isBlocked(answer)) throw new ApiError('server_error', "The model's vendor answered without candidates.");
    choices.push(wholeChoice(0, {}, null, 'content_filter'));
  }
  const usage = toUsage(answer.usageMetadata);
  const tier = toTier(answer.usageMetadata);
  return {
    body: JSON.stringify({ choices, ...(usage !== null && { usage }), ...tier }),
    usage,
    tier: tier.service_tier,
  };
}

function toChoice(candidate: unknown, responseId: string, wanted: WantedCalls): JsonObject {
  const { index, fields, calls, logprobs, finish } = readCandidate(candidate, {
    callsBefore: 0,
    responseId,
    ...wanted,
  });
  if (finish === null) {
    throw new ApiError('server_error', "The model's vendor ended its answer before it was whole.");
  }
  return wholeChoice(index, fields, logprobs, toFinishReason(finish, calls > 0));
}

function wholeChoice(index: number, fields: JsonObject, logprobs: JsonObject | null, reason: string): JsonObject {
  // An empty text, not null: no history may hold a message without any content.
  const content = fields.tool_calls === undefined ? '' : null;
  const message = { role: 'assistant', content, refusal: null, ...fields };
  return { index, message, logprobs, finish_reason: reason };
}
