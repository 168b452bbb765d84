import { ApiError } from '../../../shared/errors.ts';
import type { HttpClient } from '../../http/http-client.ts';
import type { OpenAiAnswerReader } from '../openai/answer-reader.ts';
import { openAiChat } from '../openai/chat.ts';
import type { JsonObject } from '../support/json-object.ts';
import type { FrameSink, VendorFrame, VendorMethod } from '../vendor.ts';

/** Maximum characters of the filters' results for a prompt. */
const maxResults = 1024 * 1024;

/** Chats, whose streams contain results of the content filters besides OpenAI's chunks. */
export function azureChat(http: HttpClient, answerReader: OpenAiAnswerReader): VendorMethod {
  const chat = openAiChat(http, answerReader);
  return (call, sink) => chat(call, call.stream ? new FilteredChunks(sink) : sink);
}

/**
 * Chunks as OpenAI's clients expect them, which assume a first choice in every chunk: the filters' results for the prompt
 * (`prompt_filter_results`, a chunk without choices) join the first chunk that has one
 * (https://learn.microsoft.com/azure/ai-foundry/openai/concepts/content-streaming).
 */
class FilteredChunks implements FrameSink {
  private readonly sink: FrameSink;
  /** The filters' results for the prompt, until they can join a choice. Undefined: no more can come. */
  private ofPrompt: JsonObject | undefined = {};
  private characters = 0;

  constructor(sink: FrameSink) {
    this.sink = sink;
  }

  write(frame: VendorFrame): boolean {
    if (this.ofPrompt === undefined) return this.sink.write(frame);
    const { choices, ...fields } = JSON.parse(frame.text) as JsonObject;
    if (!Array.isArray(choices) || choices.length === 0) {
      this.characters += frame.text.length;
      if (this.characters > maxResults) {
        throw new ApiError('server_error', "The model's vendor sent too many results of its filters.");
      }
      Object.assign(this.ofPrompt, fields);
      return true;
    }
    const text = JSON.stringify({ ...this.ofPrompt, ...fields, choices });
    this.ofPrompt = undefined;
    return this.sink.write({ ...frame, text });
  }

  drained(): Promise<void> {
    return this.sink.drained();
  }
}
