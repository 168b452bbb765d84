import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import fc from 'fast-check';
import { Stream } from 'openai/streaming';
import { parseResponse } from '../../../../api/endpoints/responses/parse-response.ts';
import { responseView } from '../../../../api/endpoints/responses/response-view.ts';
import { textOf } from '../../../../api/pipeline/request-text.ts';
import type { View, ViewedJob } from '../../../../api/replies/view.ts';
import type { RoutedModel } from '../../../../shared/catalogue/catalogue.ts';
import { ApiError } from '../../../../shared/errors.ts';
import type { Frame } from '../../../../shared/jobs/append.ts';
import { executeChat } from '../../../../workers/execute/execute.ts';
import { createOpenAiDialect } from '../../../../workers/vendors/openai/dialect.ts';
import { nativeEvents } from '../../../support/native-events.ts';
import { pieces } from '../../../support/pieces.ts';
import { madeUpModel } from '../../../support/routed-model.ts';
import { parseResponseEvents, saidInResponse } from '../../../support/said-in-response.ts';
import { throughLog } from '../../../support/through-log.ts';
import {
  callOf,
  collect,
  cut,
  type FixtureVendor,
  sendStream,
  startFixtureVendor,
} from '../../../vendors/contracts/fixture-vendor.ts';

const view: View = responseView;

// biome-ignore lint/suspicious/noExplicitAny: what came over the wire
type Any = any;

const id = '0197a3b0c4d57e8f9a0b1c2d3e4f5a6b';
const tools = [
  { type: 'function', name: 'weather', parameters: {}, strict: false },
  { type: 'custom', name: 'shell' },
  { type: 'namespace', name: 'desk', description: '', tools: [{ type: 'function', name: 'find', parameters: {} }] },
];

/** A request as the endpoint parses it, and the job that is made of it. */
function parsed(fields: object = {}): { job: ViewedJob; request: string; stream: boolean } {
  const body = { model: 'a-model', input: 'Hi', tools, stream: true, ...fields };
  const { request, viewOptions, stream } = parseResponse(Buffer.from(JSON.stringify(body)));
  const job = { id, model: 'a-model', createdAt: 1_700_000_000_123, viewOptions, link: (file: string) => file };
  return { job, request: textOf(request), stream };
}

const chatRow = madeUpModel({ id: 'a-model', capability: 'chat' });
const nativeRow = { ...chatRow, responses: true };

const text = fc.oneof(
  fc.string({ unit: 'grapheme', minLength: 1, maxLength: 8 }),
  fc.constantFrom('"', '\\', '\r\n', '\u2028', ' ', '😀'),
);
const texts = fc.array(text, { minLength: 1, maxLength: 4 });
const places = fc.array(fc.nat(), { maxLength: 30 });
const sizes = fc.array(fc.nat(5), { minLength: 1, maxLength: 4 });
const usage = { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7, prompt_tokens_details: { cached_tokens: 1 } };

function eventsOf(job: ViewedJob, frames: readonly Frame[]): Any[] {
  return parseResponseEvents(frames.flatMap(view.stream(job)));
}

/** Holds what a stream shows against what a held answer and the kept frames show of the same answer. */
function compareViews(job: ViewedJob, frames: readonly Frame[]): Any {
  const events = eventsOf(job, frames);
  assert.equal(events.pop(), '[DONE]');
  const { response } = saidInResponse(events);
  assert.deepEqual(JSON.parse(view.held(job, frames)), response);
  const kept = view.final?.(frames, job) ?? assert.fail('the view says what to keep');
  assert.ok(kept.length <= 3, 'few frames are kept');
  const again = eventsOf(job, kept);
  assert.equal(again.pop(), '[DONE]');
  assert.deepEqual(saidInResponse(again).response, response);
  const state = { status: 'completed', progress: 100, endedAt: 5, error: undefined, frames: kept } as const;
  assert.deepEqual(JSON.parse(JSON.stringify(view.resource?.(job, state))), response);
  const background = { ...job, viewOptions: { ...job.viewOptions, echo: { ...echoOf(job), background: true } } };
  assert.deepEqual(eventsOf(background, view.final?.(frames, background) ?? []), eventsOf(background, frames));
  return response;
}

function echoOf({ viewOptions }: ViewedJob): Record<string, unknown> {
  return (viewOptions as { echo: Record<string, unknown> }).echo;
}

describe('the view of responses', () => {
  let server: FixtureVendor;
  let vendor: ReturnType<typeof createOpenAiDialect>;
  before(async () => {
    server = await startFixtureVendor();
    vendor = createOpenAiDialect({ name: 'openai', baseUrl: server.baseUrl, apiKey: 'sk-test' });
  });
  after(async () => {
    await vendor.close();
    await server.close();
  });

  async function framesOf(
    request: string,
    stream: boolean,
    row: RoutedModel,
    batches: readonly number[],
  ): Promise<Frame[]> {
    const sink = collect();
    const call = callOf({ request, stream });
    const end = await executeChat({ vendor, row, endpoint: 'responses', keep: false, call, sink });
    return throughLog([...sink.frames, { type: 'end', text: end.body }], batches);
  }

  function sendChunks(deltas: readonly object[], finish: string, at: readonly number[]): void {
    const chunk = (choice: object): object => ({
      ...{ id: 'x', created: 1, model: 'theirs' },
      service_tier: 'flex',
      choices: [choice],
    });
    const all = [
      ...deltas.map((delta) => chunk({ index: 0, finish_reason: null, ...delta })),
      chunk({ index: 0, delta: {}, finish_reason: finish }),
      { id: 'x', choices: [], usage },
    ];
    const data = all.map((each) => `data: ${JSON.stringify(each)}\n\n`).join('');
    server.answer((response) => sendStream(response, cut(Buffer.from(`${data}data: [DONE]\n\n`), at)));
  }

  /** What a chat may say, one delta each. */
  const said = fc.oneof(
    fc.record({ reasoning: text }),
    fc.record({ content: text, logged: fc.boolean() }),
    fc.record({ refusal: text }),
    fc.record({ cites: text }),
  );
  const call = fc.record({ name: fc.constantFrom('weather', 'shell', 'desk__find'), value: text, cuts: places });
  const toDelta = (step: Any): object => {
    if (step.reasoning) return { delta: { reasoning_content: step.reasoning } };
    if (step.refusal) return { delta: { refusal: step.refusal } };
    if (step.cites) {
      const cited = { url: step.cites, title: '', start_index: 0, end_index: 1 };
      return { delta: { annotations: [{ type: 'url_citation', url_citation: cited }] } };
    }
    const logprobs = { content: [{ token: step.content, logprob: -1, bytes: null, top_logprobs: [] }], refusal: null };
    return { delta: { content: step.content }, logprobs: step.logged ? logprobs : null };
  };
  const joined = (list: readonly Any[], name: string): string => list.map((each) => each[name] ?? '').join('');

  it('a response stream over a chat adds up to the held answer, whatever is said and however bytes and frames are split', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(said, { maxLength: 8 }),
        fc.array(call, { maxLength: 3 }),
        fc.array(fc.nat(), { minLength: 1, maxLength: 8 }),
        fc.constantFrom('stop', 'length', 'content_filter'),
        fc.boolean(),
        places,
        sizes,
        async (steps, calls, order, finish, isSummarized, at, batches) => {
          const argumentsOf = ({ name, value }: Any): string =>
            JSON.stringify(name === 'shell' ? { input: value } : { value, x: 1 });
          // What is said and the calls take turns; the pieces of one call stay in order.
          const queues: object[][] = [
            steps.map(toDelta),
            ...calls.map((each, index) => [
              { delta: { tool_calls: [{ index, id: `call_${index}`, function: { name: each.name, arguments: '' } }] } },
              ...pieces(argumentsOf(each), each.cuts).map((piece) => ({
                delta: { tool_calls: [{ index, function: { arguments: piece } }] },
              })),
            ]),
          ];
          const deltas: object[] = [];
          for (let turn = 0; queues.some((queue) => queue.length > 0); turn += 1) {
            const open = queues.filter((queue) => queue.length > 0);
            deltas.push((open[(order[turn % order.length] as number) % open.length] as object[]).shift() as object);
          }
          const { job, request } = parsed(isSummarized ? { reasoning: { summary: 'auto' } } : {});
          sendChunks(deltas, finish, at);
          const response = compareViews(job, await framesOf(request, true, chatRow, batches));
          const reason = { length: 'max_output_tokens', content_filter: 'content_filter' }[finish as string];
          assert.equal(response.status, reason === undefined ? 'completed' : 'incomplete');
          assert.deepEqual(response.incomplete_details, reason === undefined ? null : { reason });
          assert.equal(response.service_tier, 'flex');
          const items = response.output as Any[];
          const parts = items.flatMap(({ type, content, summary }) =>
            type === 'message' ? content : type === 'reasoning' ? [...summary, ...(content ?? [])] : [],
          );
          const ofType = (type: string): Any[] => parts.filter((part) => part.type === type);
          assert.equal(joined(ofType('output_text'), 'text'), joined(steps, 'content'));
          assert.equal(joined(ofType('refusal'), 'refusal'), joined(steps, 'refusal'));
          assert.equal(
            joined(ofType(isSummarized ? 'summary_text' : 'reasoning_text'), 'text'),
            joined(steps, 'reasoning'),
          );
          assert.deepEqual(
            ofType('output_text').flatMap((part) => part.logprobs.map((entry: Any) => entry.token)),
            steps.flatMap((step: Any) => (step.logged ? [step.content] : [])),
          );
          assert.deepEqual(
            ofType('output_text').flatMap((part) => part.annotations.map((entry: Any) => entry.url)),
            steps.flatMap((step: Any) => step.cites ?? []),
          );
          const called = items.filter(({ type }) => type.endsWith('_call'));
          assert.deepEqual(
            called
              .map(({ call_id, type, namespace, name, arguments: given, input }) => [
                call_id,
                ...[type, namespace, name, given ?? input],
              ])
              .sort(),
            calls.map((each, index) => [
              `call_${index}`,
              ...(each.name === 'shell'
                ? ['custom_tool_call', undefined, 'shell', each.value]
                : each.name === 'weather'
                  ? ['function_call', undefined, 'weather', argumentsOf(each)]
                  : ['function_call', 'desk', 'find', argumentsOf(each)]),
            ]),
          );
          if (finish === 'stop')
            assert.ok(
              items.some(({ type }) => type !== 'reasoning'),
              'it has an answer',
            );
        },
      ),
      { numRuns: 200 },
    );
  });

  it('a whole chat answer shows the same response items as the same answer streamed', async () => {
    await fc.assert(
      fc.asyncProperty(text, texts, text, fc.array(text, { maxLength: 2 }), async (reasoning, content, value, more) => {
        const calls = [value, ...more].map((each, index) => ({
          ...{ id: `call_${index}`, type: 'function' },
          function: { name: 'shell', arguments: JSON.stringify({ input: each }) },
        }));
        const { job, request } = parsed();
        sendChunks(
          [
            { delta: { role: 'assistant', content: '', reasoning: reasoning } },
            ...content.map((piece) => ({ delta: { content: piece } })),
            ...calls.map((each, index) => ({ delta: { tool_calls: [{ index, ...each }] } })),
          ],
          'tool_calls',
          [],
        );
        const streamed = compareViews(job, await framesOf(request, true, chatRow, [3]));
        const message = { role: 'assistant', reasoning, content: content.join(''), tool_calls: calls };
        const whole = { choices: [{ index: 0, message, finish_reason: 'tool_calls' }], usage, service_tier: 'flex' };
        server.answer((response) =>
          response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(whole)),
        );
        const held = compareViews(job, await framesOf(request, false, chatRow, [1]));
        assert.deepEqual({ ...held, completed_at: 0 }, { ...streamed, completed_at: 0 });
        assert.deepEqual(held.usage, {
          input_tokens: 3,
          input_tokens_details: { cached_tokens: 1, cache_write_tokens: 0 },
          output_tokens: 4,
          output_tokens_details: { reasoning_tokens: 0 },
          total_tokens: 7,
        });
      }),
      { numRuns: 50 },
    );
  });

  /** A vendor's own items, and the events that tell them. */
  const nativeItem = fc.oneof(
    fc.record({ type: fc.constant('message'), texts }),
    fc.record({ type: fc.constant('refusal'), texts }),
    fc.record({ type: fc.constant('reasoning'), texts }),
    fc.record({ type: fc.constant('function_call'), texts }),
    fc.record({ type: fc.constant('custom_tool_call'), texts }),
  );
  it("a native response stream adds up to the held answer, with the gateway's ids, and nothing is lost or added", async () => {
    const counts = {
      input_tokens: 1,
      input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
      output_tokens: 2,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: 3,
    };
    await fc.assert(
      fc.asyncProperty(
        fc.array(nativeItem, { maxLength: 5 }),
        fc.constantFrom('completed', 'incomplete'),
        fc.boolean(),
        places,
        sizes,
        async (script, status, included, at, batches) => {
          const native = script.map((each, index) => nativeEvents(each.type, each.texts, index));
          const whole = {
            ...{ id: 'resp_theirs', object: 'response', created_at: 1, model: 'theirs', status, error: null },
            incomplete_details: status === 'completed' ? null : { reason: 'max_output_tokens' },
            ...{ output: native.map(({ item }) => item), usage: counts, service_tier: 'default' },
          };
          const begun = { ...whole, status: 'in_progress', output: [], usage: null, incomplete_details: null };
          const events = [
            { type: 'response.created', response: begun },
            { type: 'response.in_progress', response: begun },
            ...native.flatMap((each) => each.events),
            { type: `response.${status}`, response: whole },
          ].map((event, index) => ({ ...event, sequence_number: index }));
          const data = events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('');
          server.answer((response, { body }) => {
            if (JSON.parse(body).stream) sendStream(response, cut(Buffer.from(data), at));
            else response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(whole));
          });
          const { job, request } = parsed(included ? { include: ['reasoning.encrypted_content'] } : {});
          const frames = await framesOf(request, true, nativeRow, batches);
          const response = compareViews(job, frames);
          assert.equal(eventsOf(job, frames).length, events.length + 1);
          const held = compareViews(job, await framesOf(request, false, nativeRow, [1]));
          assert.deepEqual({ ...held, completed_at: 0 }, { ...response, completed_at: 0 });
          const expected = native.map(({ item: { encrypted_content: secret, ...item } }) => ({
            ...item,
            id: `${item.id}_${id}`,
            ...(included && secret !== undefined && { encrypted_content: secret }),
          }));
          assert.deepEqual(response.output, expected);
          assert.deepEqual([response.status, response.usage, response.service_tier], [status, counts, 'default']);
          assert.deepEqual([response.id, response.model], [`resp_${id}`, 'a-model']);
        },
      ),
      { numRuns: 200 },
    );
  });

  it('the view of responses shows a response in every state, with all fields', () => {
    const { job } = parsed({ instructions: 'Be brief', metadata: { a: 'b' }, previous_response_id: 'resp_1' });
    const state = { progress: 0, endedAt: undefined, error: undefined, frames: undefined };
    const shown = (more: object): Any => view.resource?.(job, { ...state, status: 'queued', ...more });
    const queued = shown({});
    assert.deepEqual(
      [queued.status, queued.usage, queued.output, queued.error, queued.completed_at, queued.created_at],
      ['queued', null, [], null, null, 1_700_000_000],
    );
    assert.deepEqual(
      [queued.instructions, queued.metadata, queued.previous_response_id],
      ['Be brief', { a: 'b' }, 'resp_1'],
    );
    assert.equal(shown({ status: 'in_progress' }).status, 'in_progress');
    const cancelled = new ApiError('cancelled', 'Cancelled.');
    assert.deepEqual(
      [shown({ status: 'cancelled', error: cancelled })].map((each) => [each.status, each.error]),
      [['cancelled', null]],
    );
    const codes = [
      ['rate_limit_exceeded', 'rate_limit_exceeded'],
      ['insufficient_quota', 'rate_limit_exceeded'],
      ['context_length_exceeded', 'invalid_prompt'],
      ['service_unavailable', 'server_error'],
      ['stream_interrupted', 'server_error'],
    ] as const;
    for (const [code, shownAs] of codes) {
      const { status, error } = shown({ status: 'failed', error: new ApiError(code, 'Sorry.') });
      assert.deepEqual([status, error], ['failed', { code: shownAs, message: 'Sorry.' }]);
    }
  });

  it('an interrupted response stream ends with response.failed and the completed items, and without [DONE]', () => {
    const { job } = parsed();
    const frames: Frame[] = [
      { seq: 1, type: 'delta', text: '{"choices":[{"index":0,"delta":{"reasoning":"Hm"}}]}' },
      { seq: 2, type: 'delta', text: '{"choices":[{"index":0,"delta":{"content":"Hello"}}]}' },
      { seq: 3, type: 'delta', text: '{"choices":[{"index":0,"delta":{"content":" there"}}]}' },
      { seq: 4, type: 'error', text: JSON.stringify(new ApiError('stream_interrupted', 'It broke.').toData()) },
    ];
    const events = eventsOf(job, frames);
    const last = events.at(-1);
    assert.deepEqual([last.type, last.sequence_number], ['response.failed', events.length - 1]);
    const fields = { code: 'stream_interrupted', message: 'It broke.', param: null };
    const error = { ...fields, type: 'server_error' };
    assert.deepEqual(events.at(-2), { type: 'error', sequence_number: events.length - 2, ...fields, error });
    assert.deepEqual(last.response.error, { code: 'server_error', message: 'It broke.' });
    assert.deepEqual(
      last.response.output.map(({ type }: Any) => type),
      ['reasoning'],
    );
    const kept = view.final?.(frames, job) ?? [];
    for (const all of [frames, kept]) {
      const state = { status: 'failed', progress: 0, endedAt: 5, error: undefined, frames: all } as const;
      assert.deepEqual(view.resource?.(job, state), last.response, 'read again it is the same');
    }
    assert.deepEqual(eventsOf(job, kept).at(-1).response, last.response);
    assert.equal(kept.length, 2);
    const unfinished = [...frames.slice(1, 3), ...frames.slice(2)];
    assert.deepEqual(view.final?.(unfinished, job), frames.slice(-1), 'nothing was whole');
    const alone = eventsOf(job, [{ ...(frames[3] as Frame), seq: 1 }]);
    assert.deepEqual(
      alone.map(({ type }) => type),
      ['response.created', 'response.in_progress', 'error', 'response.failed'],
    );
  });

  it('a vendor that numbers its items as it likes holds nothing up, and they are in its order', {
    timeout: 20_000,
  }, () => {
    const { job } = parsed();
    const item = (name: string) => ({ id: `msg_${name}`, type: 'message', role: 'assistant', content: [] });
    const indices = [4_294_967_294, 1e300, 3, 0];
    const texts = indices.map((index) =>
      JSON.stringify({ type: 'response.output_item.done', output_index: index, item: item(String(index)) }),
    );
    const frames: Frame[] = texts.map((text, index) => ({ seq: index + 1, type: 'delta', text }));
    const last: Frame = { seq: 5, type: 'end', text: '{"response":{"status":"completed","incomplete_details":null}}' };
    const { response } = eventsOf(job, [...frames, last]).find(({ type }) => type === 'response.completed');
    assert.deepEqual(
      response.output.map(({ id }: Any) => id.split('_')[1]),
      ['0', '3', '4294967294', '1e+300'],
    );
  });

  it('the stream of a background response starts with queued', () => {
    const { job } = parsed({ background: true });
    const events = eventsOf(job, [{ seq: 1, type: 'end', text: '{"usage":null}' }]);
    assert.deepEqual(
      events.slice(0, 3).map(({ type, response }) => [type, response.status]),
      [
        ['response.created', 'queued'],
        ['response.queued', 'queued'],
        ['response.in_progress', 'in_progress'],
      ],
    );
  });

  it('an error event outside the job takes the next sequence number, and has OpenAI’s clients throw', async () => {
    const event = view.errorEvent?.(new ApiError('resume_expired', 'Gone.'), 7) ?? '';
    const fields = { code: 'resume_expired', message: 'Gone.', param: null };
    const error = { ...fields, type: 'invalid_request_error' };
    assert.deepEqual(parseResponseEvents([event]), [{ type: 'error', sequence_number: 7, ...fields, error }]);
    const stream = Stream.fromSSEResponse(new Response(`${event}\n\n`), new AbortController());
    await assert.rejects(stream[Symbol.asyncIterator]().next(), { name: 'Error', ...fields });
  });
});
