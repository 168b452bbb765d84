import assert from 'node:assert/strict';
import OpenAI from 'openai';

/** What a test asks for; the model is always `sandbox-responses`. */
export type ResponseParameters = Omit<OpenAI.Responses.ResponseCreateParamsNonStreaming, 'model' | 'stream'>;

/** An event of a streamed response. */
export type ResponseEvent = OpenAI.Responses.ResponseStreamEvent;

export const responsesModel = 'sandbox-responses';

/** Asks a sandbox for responses, with the official client. */
export class ResponsesClient {
  readonly openai: OpenAI;

  /** @param url of the sandbox, without `/v1`. */
  constructor(url: string) {
    this.openai = new OpenAI({ apiKey: 'any', baseURL: `${url}/v1`, maxRetries: 0 });
  }

  create(parameters: ResponseParameters) {
    return this.openai.responses.create({ model: responsesModel, ...parameters });
  }

  async streamed(parameters: ResponseParameters): Promise<ResponseEvent[]> {
    const stream = await this.openai.responses.create({ model: responsesModel, ...parameters, stream: true });
    const events: ResponseEvent[] = [];
    for await (const event of stream) events.push(event);
    return events;
  }
}

/** The events of one type. */
export function onlyEvents<Type extends ResponseEvent['type']>(events: readonly ResponseEvent[], type: Type) {
  return events.filter((event) => event.type === type) as Extract<ResponseEvent, { type: Type }>[];
}

/** The response that the last event holds. */
export function finalResponse(events: readonly ResponseEvent[]): OpenAI.Responses.Response {
  const last = events.at(-1);
  assert.ok(last && 'response' in last);
  return last.response;
}

/** The calls of functions in a response. */
export function functionCalls({ output }: OpenAI.Responses.Response) {
  return output.filter((item) => item.type === 'function_call');
}

/** What was put out can be put in again; the client's types say so only of each item by itself. */
export function asInput({ output }: OpenAI.Responses.Response) {
  return output as OpenAI.Responses.ResponseInputItem[];
}

/** The same tools for every test: one with bounds, one with a list of values. */
export const weatherTool: OpenAI.Responses.FunctionTool = {
  type: 'function',
  name: 'get_weather',
  strict: false,
  parameters: {
    type: 'object',
    properties: { city: { type: 'string' }, days: { type: 'integer', minimum: 2 } },
    required: ['city', 'days'],
  },
};
export const clockTool: OpenAI.Responses.FunctionTool = {
  type: 'function',
  name: 'get_time',
  strict: false,
  parameters: { type: 'object', properties: { zone: { enum: ['UTC', 'CET'] } }, required: ['zone'] },
};
