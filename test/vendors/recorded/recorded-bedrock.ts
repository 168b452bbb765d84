import type { ServerResponse } from 'node:http';
import {
  BedrockRuntimeClient,
  type BedrockRuntimeClientConfig,
  type ContentBlock,
  type ContentBlockDelta,
  type ConverseResponse,
  type ConverseStreamOutput,
  type StopReason,
} from '@aws-sdk/client-bedrock-runtime';
import { S3Client } from '@aws-sdk/client-s3';
import { EventStreamCodec } from '@smithy/eventstream-codec';
import { piecesOf } from '../../support/pieces.ts';

/*
 * Answers in the wire format of Amazon Bedrock's Converse, written after its API reference
 * (https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html and …_ConverseStream.html), its user
 * guide (…/userguide/prompt-caching.html, …/userguide/tool-use.html) and the format of event streams
 * (https://smithy.io/2.0/aws/amazon-eventstream.html) in the state that the types of @aws-sdk/client-bedrock-runtime
 * 3.1163.0 describe, November 2026. The tests let that client read every one of them.
 */

const usage = {
  inputTokens: 25,
  outputTokens: 300,
  totalTokens: 2300,
  cacheReadInputTokens: 1875,
  cacheWriteInputTokens: 100,
  cacheDetails: [
    { ttl: '1h' as const, inputTokens: 60 },
    { ttl: '5m' as const, inputTokens: 40 },
  ],
};

/** That usage as a chat has it. */
export const chatUsage = {
  prompt_tokens: 2000,
  completion_tokens: 300,
  total_tokens: 2300,
  prompt_tokens_details: {
    cached_tokens: 1875,
    cache_write_tokens: 100,
    cache_creation_token_details: { ephemeral_5m_input_tokens: 40, ephemeral_1h_input_tokens: 60 },
  },
};

/** A whole answer. */
export type Answer = ConverseResponse & { output: { message: { role: 'assistant'; content: ContentBlock[] } } };

export function answerOf(content: ContentBlock[], stopReason: StopReason = 'end_turn'): Answer {
  return {
    output: { message: { role: 'assistant', content } },
    stopReason,
    usage,
    metrics: { latencyMs: 551 },
    serviceTier: { type: 'default' },
  };
}

export const text = (said: string): ContentBlock => ({ text: said });
export const thought = (said: string, signature?: string): ContentBlock => ({
  reasoningContent: { reasoningText: { text: said, ...(signature !== undefined && { signature }) } },
});
export const redacted = (base64: string): ContentBlock => ({
  reasoningContent: { redactedContent: new Uint8Array(Buffer.from(base64, 'base64')) },
});
export const toolUse = (toolUseId: string, name: string, input: Record<string, string | number | null>) =>
  ({ toolUse: { toolUseId, name, input } }) satisfies ContentBlock;

export const signature = 'EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pkiMOYds';
export const redactedData = 'EmwKAhgBEgy3va3pzix/LafPsn4aDFIT2Xlxh0L5L8rLVyIw';

/** Answers by what is special about them. */
export const recorded: Readonly<Record<string, Answer>> = {
  'plain text': answerOf([text('Hello! How are you today?')]),
  'multi-byte text with quotes and line breaks': answerOf([text('Zażółć "gęślą" 🦥\n日本語 \\ 👩‍👩‍👧\u2028')]),
  'tool calls in fragments': answerOf(
    [
      text("Okay, let's check:"),
      toolUse('tooluse_kZJMlvQmRJ6eAyJE5GIl7Q', 'get_weather', { location: 'San Francisco, CA' }),
      toolUse('tooluse_1JMlvQmRJ6eAyJE5GIl7Qa', 'get_time', {}),
    ],
    'tool_use',
  ),
  'thinking with its signature': answerOf([thought('The GCD of 1071 and 462: 21.', signature), text('**21**.')]),
  'thinking without a signature': answerOf([thought('Hmm, 21.'), text('21')]),
  'redacted thinking, and thinking between calls': answerOf(
    [redacted(redactedData), thought('First.', signature), toolUse('tooluse_1', 'get_weather', { location: 'Łódź' })],
    'tool_use',
  ),
  'an end at the token limit': answerOf([text('Once upon')], 'max_tokens'),
  'an end at the context window': answerOf([text('Once upon')], 'model_context_window_exceeded'),
  'an end at a stop sequence': {
    ...answerOf([text('One, two, ')], 'stop_sequence'),
    additionalModelResponseFields: { stop_sequence: 'three' },
  },
  'an end by a guardrail': answerOf([text('Sorry, no.')], 'guardrail_intervened'),
  'an end by the content filter': answerOf([text('Once')], 'content_filtered'),
  'an empty answer': answerOf([]),
};

function deltasOf(block: ContentBlock, size: number): ContentBlockDelta[] {
  if (block.text !== undefined) return piecesOf(block.text, size).map((piece) => ({ text: piece }));
  if (block.toolUse !== undefined) {
    // All of an empty input is an empty piece.
    const { input } = block.toolUse;
    const whole = Object.keys(input as object).length === 0 ? [''] : piecesOf(JSON.stringify(input), size);
    return whole.map((piece) => ({ toolUse: { input: piece } }));
  }
  const { reasoningText, redactedContent } = block.reasoningContent ?? {};
  if (redactedContent !== undefined) {
    // In two pieces, of which the first is no whole group of base64.
    const halves = [redactedContent.subarray(0, 4), redactedContent.subarray(4)];
    return halves.map((half) => ({ reasoningContent: { redactedContent: half } }));
  }
  const { text: said = '', signature: signed } = reasoningText ?? {};
  return [
    ...piecesOf(said, size).map((piece) => ({ reasoningContent: { text: piece } })),
    ...(signed === undefined ? [] : [{ reasoningContent: { signature: signed } }]),
  ];
}

/** An answer as the events of a stream. Only calls begin with an event. */
export function eventsOf(answer: Answer, size = 5): ConverseStreamOutput[] {
  const { output, stopReason, additionalModelResponseFields: fields, usage, metrics, serviceTier } = answer;
  const blocks = output.message.content.flatMap((block, contentBlockIndex): ConverseStreamOutput[] => [
    ...(block.toolUse === undefined
      ? []
      : [
          {
            contentBlockStart: {
              start: { toolUse: { toolUseId: block.toolUse.toolUseId, name: block.toolUse.name } },
              contentBlockIndex,
            },
          },
        ]),
    ...deltasOf(block, size).map((delta) => ({ contentBlockDelta: { delta, contentBlockIndex } })),
    { contentBlockStop: { contentBlockIndex } },
  ]);
  return [
    { messageStart: { role: 'assistant' } },
    ...blocks,
    {
      messageStop: {
        stopReason,
        ...(fields !== undefined && { additionalModelResponseFields: fields }),
      },
    },
    { metadata: { usage, metrics, ...(serviceTier && { serviceTier }) } },
  ];
}

/** JSON as it goes over the wire: bytes in base64. */
export function toJson(value: unknown): string {
  return JSON.stringify(value, (_name, part) =>
    part instanceof Uint8Array ? Buffer.from(part).toString('base64') : part,
  );
}

const codec = new EventStreamCodec(
  (bytes: Uint8Array) => Buffer.from(bytes).toString(),
  (said: string) => Buffer.from(said),
);

/** One message of an event stream. */
export function messageOf(headers: Readonly<Record<string, string>>, body: string): Buffer {
  const typed = Object.entries(headers).map(([name, value]) => [name, { type: 'string' as const, value }]);
  return Buffer.from(codec.encode({ headers: Object.fromEntries(typed), body: Buffer.from(body) }));
}

export function eventMessage(type: string, body: string): Buffer {
  return messageOf({ ':event-type': type, ':content-type': 'application/json', ':message-type': 'event' }, body);
}

export function exceptionMessage(type: string, body: string): Buffer {
  return messageOf(
    { ':exception-type': type, ':content-type': 'application/json', ':message-type': 'exception' },
    body,
  );
}

/** Events as Bedrock writes them, padded so that their lengths tell nothing. */
export function toWire(events: readonly ConverseStreamOutput[]): Buffer {
  return Buffer.concat(
    events.flatMap((event) =>
      Object.entries(event).map(([type, body]) => eventMessage(type, toJson({ ...body, p: 'abcdefghijk' }))),
    ),
  );
}

/** The type of a body of event messages. */
export const eventStream = 'application/vnd.amazon.eventstream';

/** Answers a stream, each part as an HTTP chunk of its own. */
export function sendEvents(response: ServerResponse, parts: readonly Uint8Array[]): void {
  response.writeHead(200, { 'content-type': eventStream });
  for (const part of parts) response.write(part);
  response.end();
}

/** An error body, whose name is in the header `x-amzn-errortype`. */
export function errorBody(message: string): string {
  return JSON.stringify({ message });
}

/** Amazon's own client of a fixture. */
export function bedrockClient(
  endpoint: string,
  access: Pick<BedrockRuntimeClientConfig, 'credentials' | 'token' | 'authSchemePreference'>,
): BedrockRuntimeClient {
  return new BedrockRuntimeClient({
    ...{ region: 'us-east-1', endpoint, maxAttempts: 1, ...access },
    // Of this client the handler speaks HTTP/2 alone, of that one HTTP/1.1, as the fixture does.
    requestHandler: new S3Client({ region: 'us-east-1' }).config.requestHandler,
  });
}
