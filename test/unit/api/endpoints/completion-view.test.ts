import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import fc from 'fast-check';
import { completions } from '../../../../api/endpoints/completions/completions.ts';
import type { Endpoint } from '../../../../api/pipeline/endpoint.ts';
import type { ViewedJob } from '../../../../api/replies/view.ts';
import type { RoutedModel } from '../../../../shared/catalogue/catalogue.ts';
import type { Frame } from '../../../../shared/jobs/append.ts';
import { executeChat } from '../../../../workers/execute/execute.ts';
import { createOpenAiDialect } from '../../../../workers/vendors/openai/dialect.ts';
import { madeUpModel } from '../../../support/routed-model.ts';
import { saidInCompletions } from '../../../support/said-in-completion.ts';
import { throughLog } from '../../../support/through-log.ts';
import {
  callOf,
  collect,
  cut,
  type FixtureVendor,
  sendStream,
  startFixtureVendor,
} from '../../../vendors/contracts/fixture-vendor.ts';

const { view }: Endpoint = completions;

const job: ViewedJob = {
  id: '0197a3b0c4d57e8f9a0b1c2d3e4f5a6b',
  model: 'a-model',
  createdAt: 1_700_000_000_123,
  viewOptions: { includeUsage: true },
  link: (file) => file,
};
const row = madeUpModel({ id: 'a-model', capability: 'chat' });
const nativeRow = { ...row, legacyCompletions: true };

const text = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 8 }),
  fc.constantFrom('"', '\\', '\r\n', '\u2028', ' ', ''),
);
const reason = fc.constantFrom('stop', 'length', 'content_filter');
const fingerprint = fc.constantFrom({}, { system_fingerprint: 'fp_1' });

/** What one choice says, piece by piece, and how it ends. */
interface Script {
  readonly pieces: readonly { readonly text: string; readonly logprob: number }[];
  readonly reason: string;
}
const script: fc.Arbitrary<Script> = fc.record({
  pieces: fc.array(fc.record({ text, logprob: fc.double({ min: -9, max: 0, noNaN: true }) }), { maxLength: 8 }),
  reason,
});

/** The chunks of several choices, taking turns as `turns` says; the last of each has its finish reason. */
function interleave<Chunk>(choices: readonly (readonly Chunk[])[], turns: readonly number[]): Chunk[] {
  const left = choices.map((chunks) => [...chunks]);
  const all: Chunk[] = [];
  for (let turn = 0; left.some((chunks) => chunks.length > 0); turn += 1) {
    const open = left.filter((chunks) => chunks.length > 0);
    all.push((open[(turns[turn % turns.length] ?? 0) % open.length] as Chunk[]).shift() as Chunk);
  }
  return all;
}

/** The objects that a stream of these frames shows, without `[DONE]`, which has to come once and last. */
function shown(frames: readonly Frame[]) {
  const events = frames.flatMap(view.stream(job)).map((event) => event.replace(/^data: /, ''));
  assert.equal(events.pop(), '[DONE]');
  assert.ok(events.every((event) => !event.includes('\n')));
  return events.map((event) => JSON.parse(event));
}

/** Holds what a stream shows against what a held answer shows of the same frames, and of those that are kept. */
function compareViews(frames: readonly Frame[], usage: unknown) {
  const held = JSON.parse(view.held(job, frames));
  const { choices: _choices, usage: heldUsage, ...envelope } = held;
  const chunks = shown(frames);
  assert.deepEqual(saidInCompletions(chunks), saidInCompletions([held]));
  assert.deepEqual(
    held.choices.map(({ index }: { index: number }) => index),
    saidInCompletions([held]).map(({ index }) => index),
  );
  for (const { choices: _chunkChoices, usage: _usage, ...chunkEnvelope } of chunks) {
    assert.deepEqual({ ...envelope, ...chunkEnvelope }, envelope);
  }
  assert.deepEqual(heldUsage, usage);
  assert.deepEqual(chunks.at(-1).usage, usage);
  const kept = view.final?.(frames, job) ?? frames;
  assert.deepEqual(JSON.parse(view.held(job, kept)), held);
  assert.deepEqual(saidInCompletions(shown(kept)), saidInCompletions([held]));
  return held;
}

describe('the view of legacy completions', () => {
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

  async function framesOf(request: object, more: { row: RoutedModel; stream?: boolean }, sizes: readonly number[]) {
    const sink = collect();
    const call = callOf({ request: JSON.stringify(request), stream: more.stream ?? true });
    const end = await executeChat({ vendor, row: more.row, endpoint: 'completions', keep: false, call, sink });
    return throughLog([...sink.frames, { type: 'end', text: end.body }], sizes);
  }

  const send = (chunks: readonly object[], places: readonly number[]) => {
    const data = chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join('');
    return (response: Parameters<typeof sendStream>[0]) =>
      sendStream(response, cut(Buffer.from(`${data}data: [DONE]\n\n`), places));
  };
  const head = { id: 'x-1', created: 1, model: 'theirs' };
  const places = fc.array(fc.nat(), { maxLength: 30 });
  const sizes = fc.array(fc.nat(5), { minLength: 1, maxLength: 4 });
  const turns = fc.array(fc.nat(3), { minLength: 1, maxLength: 12 });
  const scripts = fc.array(script, { minLength: 1, maxLength: 3 });

  it('a completions stream of a native model adds up to the held answer, however bytes and frames are split', async () => {
    await fc.assert(
      fc.asyncProperty(
        scripts,
        fc.boolean(),
        fingerprint,
        places,
        sizes,
        turns,
        async (choices, logged, more, ...cuts) => {
          const [bytePlaces, batchSizes, order] = cuts;
          const chunksOf = ({ pieces, reason: last }: Script, index: number) => [
            ...pieces.map((piece, at) => ({
              text: piece.text,
              index,
              logprobs: logged
                ? {
                    tokens: [piece.text],
                    token_logprobs: [piece.logprob],
                    top_logprobs: [{ a: -1 }],
                    text_offset: [at],
                  }
                : null,
              finish_reason: null,
            })),
            { text: '', index, logprobs: null, finish_reason: last },
          ];
          const chunks = interleave(choices.map(chunksOf), order).map((choice) => ({
            ...{ ...head, object: 'text_completion', ...more },
            choices: [choice],
            usage: null,
          }));
          const usage = { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 };
          server.answer(send([...chunks, { ...head, choices: [], usage }], bytePlaces));
          const held = compareViews(await framesOf({ prompt: 'x' }, { row: nativeRow }, batchSizes), usage);
          assert.deepEqual(
            held.choices.map((choice: { text: string }) => choice.text),
            choices.map(({ pieces }) => pieces.map((piece) => piece.text).join('')),
          );
          assert.deepEqual(
            held.choices.map((choice: { finish_reason: string }) => choice.finish_reason),
            choices.map((choice) => choice.reason),
          );
        },
      ),
      { numRuns: 100 },
    );
  });

  it('a completions stream over a chat adds up to the held answer, streamed or whole, however bytes and frames are split', async () => {
    const request = fc.record({
      prompt: fc.oneof(text, fc.array(text, { minLength: 1, maxLength: 6 })),
      extra: fc.constantFrom({}, { echo: true }, { logprobs: 2 }),
    });
    await fc.assert(
      fc.asyncProperty(scripts, request, places, sizes, turns, async (choices, { prompt, extra }, ...cuts) => {
        const [bytePlaces, batchSizes, order] = cuts;
        const logged = 'logprobs' in extra;
        const token = ({ text: said, logprob }: Script['pieces'][number]) => ({
          ...{ token: said, logprob, bytes: [] },
          top_logprobs: [{ token: said, logprob, bytes: [] }],
        });
        const chunksOf = ({ pieces, reason: last }: Script, index: number) => [
          { index, delta: { role: 'assistant', content: '' }, logprobs: null, finish_reason: null },
          ...pieces.map((piece) => ({
            ...{ index, delta: { content: piece.text }, finish_reason: null },
            logprobs: logged ? { content: [token(piece)], refusal: null } : null,
          })),
          { index, delta: {}, logprobs: null, finish_reason: last },
        ];
        const usage = { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7, details: { of: 1 } };
        const chunks = interleave(choices.map(chunksOf), order).map((choice) => ({ ...head, choices: [choice] }));
        const whole = {
          ...head,
          choices: choices.map(({ pieces, reason: last }, index) => ({
            ...{ index, message: { role: 'assistant', content: pieces.map((piece) => piece.text).join('') } },
            logprobs: logged ? { content: pieces.map(token), refusal: null } : null,
            finish_reason: last,
          })),
          usage,
        };
        const stream = send([...chunks, { ...head, choices: [], usage }], bytePlaces);
        server.answer((response, { body }) => {
          if (JSON.parse(body).stream) stream(response);
          else response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(whole));
        });
        const count = typeof prompt === 'string' ? 1 : prompt.length;
        const sum = { prompt_tokens: 3 * count, completion_tokens: 4 * count, total_tokens: 7 * count };
        const asked = { prompt, ...extra, n: choices.length };
        const frames = await framesOf(asked, { row }, batchSizes);
        const held = compareViews(frames, { ...sum, details: { of: count } });
        const [end] = await framesOf(asked, { row, stream: false }, batchSizes);
        assert.deepEqual(JSON.parse(view.held(job, [end as Frame])), held);
        const prompts = [prompt].flat();
        assert.deepEqual(
          held.choices.map((choice: { text: string }) => choice.text),
          prompts.flatMap((each) =>
            choices.map(({ pieces }) => ('echo' in extra ? each : '') + pieces.map((piece) => piece.text).join('')),
          ),
        );
      }),
      { numRuns: 100 },
    );
  });
});
