import assert from 'node:assert/strict';
import type Anthropic from '@anthropic-ai/sdk';
import { z } from 'zod';

/*
 * The answers of a gateway to Anthropic's client, as its types have them: each `satisfies` makes the compiler hold a schema
 * against a type, so that no required field can be missing here; the schemas then hold every answer against it. Fields that
 * no type has are refused, too.
 */

const count = z.int().min(0);

const textBlock = z.strictObject({ type: z.literal('text'), text: z.string(), citations: z.tuple([]) });
const thinkingBlock = z.strictObject({ type: z.literal('thinking'), thinking: z.string(), signature: z.string() });
const redactedBlock = z.strictObject({ type: z.literal('redacted_thinking'), data: z.string() });
const toolBlock = z.strictObject({
  type: z.literal('tool_use'),
  id: z.string().min(1),
  name: z.string().min(1),
  input: z.record(z.string(), z.unknown()),
  caller: z.strictObject({ type: z.literal('direct') }),
});
const contentBlock = z.discriminatedUnion('type', [
  textBlock satisfies z.ZodType<Anthropic.TextBlock>,
  thinkingBlock satisfies z.ZodType<Anthropic.ThinkingBlock>,
  redactedBlock satisfies z.ZodType<Anthropic.RedactedThinkingBlock>,
  toolBlock satisfies z.ZodType<Anthropic.ToolUseBlock>,
]);

const counts = {
  input_tokens: count,
  output_tokens: count,
  cache_creation_input_tokens: count,
  cache_read_input_tokens: count,
  output_tokens_details: z.strictObject({ thinking_tokens: count }).nullable(),
  server_tool_use: z.null(),
};
const deltaUsage = z.strictObject(counts) satisfies z.ZodType<Anthropic.MessageDeltaUsage>;
const usage = z.strictObject({
  ...counts,
  cache_creation: z.null(),
  inference_geo: z.null(),
  service_tier: z.enum(['standard', 'priority', 'batch']).nullable(),
  speed: z.null(),
}) satisfies z.ZodType<Anthropic.Usage>;

const stop = {
  stop_reason: z.enum(['end_turn', 'max_tokens', 'stop_sequence', 'tool_use', 'refusal']).nullable(),
  stop_sequence: z.string().nullable(),
  stop_details: z
    .strictObject({ type: z.literal('refusal'), category: z.null(), explanation: z.null() })
    .nullable() satisfies z.ZodType<Anthropic.RefusalStopDetails | null>,
  container: z.null(),
};
const message = z.strictObject({
  id: z.string().regex(/^msg_[0-9a-f]{32}$/),
  type: z.literal('message'),
  role: z.literal('assistant'),
  model: z.string().min(1),
  content: z.array(contentBlock),
  ...stop,
  diagnostics: z.null(),
  usage,
}) satisfies z.ZodType<Anthropic.Message>;
const ended = message.extend({ stop_reason: stop.stop_reason.unwrap() });

const delta = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('text_delta'), text: z.string().min(1) }),
  z.strictObject({ type: z.literal('thinking_delta'), thinking: z.string().min(1) }),
  z.strictObject({ type: z.literal('signature_delta'), signature: z.string().min(1) }),
  z.strictObject({ type: z.literal('input_json_delta'), partial_json: z.string().min(1) }),
]) satisfies z.ZodType<Anthropic.RawContentBlockDelta>;
const streamEvent = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('message_start'), message }),
  z.strictObject({ type: z.literal('content_block_start'), index: count, content_block: contentBlock }),
  z.strictObject({ type: z.literal('content_block_delta'), index: count, delta }),
  z.strictObject({ type: z.literal('content_block_stop'), index: count }),
  z.strictObject({ type: z.literal('message_delta'), delta: z.strictObject(stop), usage: deltaUsage }),
  z.strictObject({ type: z.literal('message_stop') }),
]) satisfies z.ZodType<Anthropic.RawMessageStreamEvent>;
const ping = z.strictObject({ type: z.literal('ping') });

const error = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.enum([
      ...['invalid_request_error', 'authentication_error', 'permission_error', 'not_found_error'],
      ...['rate_limit_error', 'timeout_error', 'api_error', 'overloaded_error'],
    ] as const satisfies Anthropic.ErrorType[]),
    message: z.string().min(1),
    // Of betas' errors.
    details: z.looseObject({ error_code: z.string() }).optional(),
  }) satisfies z.ZodType<Anthropic.ErrorObject>,
  // In https://docs.claude.com/en/api/errors, although not in the type.
  z.strictObject({ type: z.literal('request_too_large'), message: z.string().min(1) }),
]);
const errorAnswer = z.strictObject({ type: z.literal('error'), error, request_id: z.string().regex(/^(job|req)_/) });
const errorEvent = z.strictObject({ type: z.literal('error'), error });

const model = z.strictObject({
  type: z.literal('model'),
  id: z.string().min(1),
  display_name: z.string().min(1),
  created_at: z.iso.datetime(),
  max_input_tokens: count.nullable(),
  max_tokens: count.nullable(),
  lifecycle: z.literal('active'),
  capabilities: z.null(),
  deprecated_at: z.null(),
  retires_at: z.null(),
  line: z.null(),
}) satisfies z.ZodType<Anthropic.ModelInfo>;
const modelPage = z.strictObject({
  data: z.array(model),
  has_more: z.boolean(),
  first_id: z.string().nullable(),
  last_id: z.string().nullable(),
});
const tokenCount = z.strictObject({ input_tokens: count }) satisfies z.ZodType<Anthropic.MessageTokensCount>;

/** Holds a whole answer against the type that its path has. @throws ZodError */
function assertAnthropicAnswer(url: string, status: number, answer: unknown): void {
  const { pathname } = new URL(url);
  if (status !== 200) errorAnswer.parse(answer);
  else if (pathname.endsWith('/count_tokens')) tokenCount.parse(answer);
  else if (pathname.endsWith('/models')) modelPage.parse(answer);
  else if (pathname.includes('/models/')) model.parse(answer);
  else ended.parse(answer);
}

/** Takes the events of a stream one by one, each as its `event:` and `data:`, and holds them against types and order. */
export class AnthropicEvents {
  #open: number | undefined;
  #next = 0;
  #last = '';

  /** @throws AssertionError or ZodError */
  take(block: string): void {
    const { name, data } = /^event: (?<name>\w+)\ndata: (?<data>.*)(?:\nid: \S+)?$/.exec(block)?.groups ?? {};
    assert.ok(data !== undefined, `not an event: ${block}`);
    const event = JSON.parse(data);
    assert.equal(event.type, name);
    assert.ok(!['message_stop', 'error'].includes(this.#last), `${name} after the end`);
    if (name === 'ping') ping.parse(event);
    else if (name === 'error') errorEvent.parse(event);
    else this.#takeInOrder(streamEvent.parse(event));
    if (name !== 'ping') this.#last = event.type;
  }

  #takeInOrder(event: z.infer<typeof streamEvent>): void {
    const { type } = event;
    assert.equal(type === 'message_start', this.#last === '', `${type} after '${this.#last}'`);
    assert.equal(type === 'message_stop', this.#last === 'message_delta', `${type} after '${this.#last}'`);
    if (type === 'message_delta') assert.notEqual(event.delta.stop_reason, null);
    if (!('index' in event)) {
      assert.equal(this.#open, undefined, `${type} within a block`);
    } else if (type === 'content_block_start') {
      assert.deepEqual([this.#open, event.index], [undefined, this.#next]);
      this.#open = this.#next++;
    } else {
      assert.equal(event.index, this.#open, type);
      if (type === 'content_block_stop') this.#open = undefined;
    }
  }
}

/** A `fetch` that holds every answer against the client's types, an event as soon as it has come. */
export const typedFetch: typeof fetch = async (input, init) => {
  const response = await fetch(input, init);
  const { status, headers, body } = response;
  if (body === null || !/^text\/event-stream/.test(headers.get('content-type') ?? '')) {
    assertAnthropicAnswer(String(input), status, await response.clone().json());
    return response;
  }
  const events = new AnthropicEvents();
  const decoder = new TextDecoder();
  let text = '';
  const checked = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      text += decoder.decode(chunk, { stream: true });
      for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
        events.take(text.slice(0, end));
        text = text.slice(end + 2);
      }
      controller.enqueue(chunk);
    },
  });
  return new Response(body.pipeThrough(checked), { status, headers });
};
