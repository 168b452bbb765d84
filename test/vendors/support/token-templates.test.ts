import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { AnthropicErrors } from '../../../workers/vendors/anthropic/errors.ts';
import { AnthropicStream } from '../../../workers/vendors/anthropic/stream.ts';
import { GeminiAnswerReader } from '../../../workers/vendors/gemini/answer-reader.ts';
import { GeminiStream } from '../../../workers/vendors/gemini/stream.ts';
import { GeminiTokenTemplate } from '../../../workers/vendors/gemini/token-template.ts';

/** Texts with all that could be taken for something else. */
const texts = fc.oneof(
  fc.string({ unit: 'grapheme' }),
  fc.constantFrom('"text": "', '"usageMetadata": {}', '\\', '"', '}', ']}', '\n', '\u2028', '{"a":1}', ' '),
  fc.lorem({ maxCount: 3 }),
);

interface Stream {
  read(bytes: Buffer): unknown;
  end(): { readonly body: string };
}

type OpenStream = (frames: string[]) => Stream;

const sinkOf = (frames: string[]) => ({
  write: ({ text }: { text: string }) => frames.push(text) > 0,
  drained: () => Promise.resolve(),
});

const openAnthropic: OpenStream = (frames) => new AnthropicStream(new AnthropicErrors('a', 'key'), sinkOf(frames));
const openGemini: OpenStream = (frames) => new GeminiStream(new GeminiAnswerReader('g', 'key'), sinkOf(frames));

/** The frames and the end of a stream of these events. */
function readAll(open: OpenStream, events: readonly string[]): { frames: unknown[]; end: unknown } {
  const frames: string[] = [];
  const stream = open(frames);
  for (const event of events) stream.read(Buffer.from(`data: ${event}\n\n`));
  return { frames: frames.map((text) => JSON.parse(text) as unknown), end: JSON.parse(stream.end().body) };
}

/** What all deltas say, joined. */
function said(frames: readonly unknown[]): string {
  return frames
    .map((frame) => (frame as { choices: { delta: { content?: string } }[] }).choices[0]?.delta.content ?? '')
    .join('');
}

const geminiEvent = (text: string, counts: object, more: object = {}): string =>
  JSON.stringify({
    candidates: [{ content: { parts: [{ text }], role: 'model' }, index: 0, ...more }],
    usageMetadata: counts,
    modelVersion: 'm',
    responseId: 'r',
  });

describe('token templates of streams', () => {
  it('a Gemini stream of events that differ only in the token yields every token and the last counts', () => {
    fc.assert(
      fc.property(fc.array(texts, { minLength: 1, maxLength: 20 }), (words) => {
        const events = words.map((word, index) =>
          geminiEvent(word, { promptTokenCount: 7, candidatesTokenCount: index, totalTokenCount: index + 7 }),
        );
        const last = { promptTokenCount: 7, candidatesTokenCount: 99, totalTokenCount: 106, thoughtsTokenCount: 1 };
        const { frames, end } = readAll(openGemini, [...events, geminiEvent('', last, { finishReason: 'STOP' })]);
        assert.equal(said(frames), words.join(''));
        assert.equal((end as { usage: { completion_tokens: number } }).usage.completion_tokens, 100);
      }),
    );
  });

  it('GeminiTokenTemplate returns the counts of all events that matched, whatever their keys and values are', () => {
    const values = fc.oneof(
      fc.nat(),
      fc.constantFrom(0, -1, 1.05, 1e30, 'TEXT', 'a1', '\\u0031', '"', '$^', null),
      fc.array(fc.record({ modality: fc.constantFrom('TEXT', 'IMAGE'), tokenCount: fc.nat() }), { maxLength: 2 }),
    );
    const counts = fc.dictionary(fc.constantFrom('a', 'b', 'c1', '.*'), values, { maxKeys: 3 });
    fc.assert(
      fc.property(fc.array(fc.tuple(counts, fc.nat({ max: 3 })), { minLength: 1, maxLength: 12 }), (shapes) => {
        const template = GeminiTokenTemplate.from(geminiEvent('one', {}));
        const all = shapes.flatMap(([each, repeats]) =>
          Array.from({ length: repeats + 1 }, (_, index) => JSON.parse(JSON.stringify({ ...each, n: 9 + index }))),
        );
        for (const each of all) assert.equal(template?.read(geminiEvent('two', each)), '"two"');
        assert.deepEqual(template?.takeCounts(), Object.assign({}, ...all));
      }),
    );
  });

  it('an Anthropic stream of events that differ only in the token yields every token, in whichever block', () => {
    fc.assert(
      fc.property(fc.array(fc.array(texts, { maxLength: 8 }), { minLength: 1, maxLength: 4 }), (blocks) => {
        const events: object[] = [{ type: 'message_start', message: { usage: { input_tokens: 1, output_tokens: 1 } } }];
        for (const [index, words] of blocks.entries()) {
          events.push({ type: 'content_block_start', index, content_block: { type: 'text', text: '' } });
          for (const text of words) {
            events.push({ type: 'content_block_delta', index, delta: { type: 'text_delta', text } });
          }
          events.push({ type: 'content_block_stop', index });
        }
        events.push({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 5 } });
        events.push({ type: 'message_stop' });
        const { frames } = readAll(
          openAnthropic,
          events.map((event) => JSON.stringify(event)),
        );
        assert.equal(said(frames), blocks.flat().join(''));
      }),
    );
  });

  it('an Anthropic stream rejects a token event after the end of its block', () => {
    const delta = { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'word' } };
    const events = [
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
      ...[delta, delta, delta],
      { type: 'content_block_stop', index: 0 },
      delta,
    ];
    const texts = events.map((event) => JSON.stringify(event));
    assert.throws(() => readAll(openAnthropic, texts), { message: /unknown shape/ });
  });

  it('GeminiTokenTemplate leaves events with thoughts, an end or odd counts to the full parser', () => {
    const template = GeminiTokenTemplate.from(geminiEvent('one', { totalTokenCount: 1 }));
    assert.equal(template?.read(geminiEvent('two', { totalTokenCount: 2 })), '"two"');
    assert.deepEqual(template?.takeCounts(), { totalTokenCount: 2 });
    assert.equal(template?.takeCounts(), undefined);
    const others = [
      geminiEvent('', { totalTokenCount: 2 }),
      geminiEvent('quoted "two"', { totalTokenCount: 2 }),
      geminiEvent('two', { totalTokenCount: 2 }, { finishReason: 'STOP' }),
      geminiEvent('two', [1]),
      geminiEvent('two', { totalTokenCount: 2 }).replace('"text"', '"thought":true,"text"'),
      geminiEvent('two', { totalTokenCount: 2 }).replace('{"totalTokenCount":2}', '{"a":1},"error":{"code":500}'),
      geminiEvent('two', { totalTokenCount: 2 }).replace('{"totalTokenCount":2}', ''),
      geminiEvent('two', { totalTokenCount: 2 }).slice(0, -1),
      // Like counts that matched, but no JSON.
      geminiEvent('two', { totalTokenCount: 2 }).replace(':2}', ':02}'),
      geminiEvent('two', { totalTokenCount: 2 }).replace(':2}', ':2 2}'),
      // As long as the template's, before the token, between it and the counts, and after these.
      geminiEvent('two', { totalTokenCount: 2 }).replace('"candidates"', '"candidate_"'),
      geminiEvent('two', { totalTokenCount: 2 }, { index: 1 }),
      geminiEvent('two', { totalTokenCount: 2 }).replace('"responseId"', '"error_code"'),
    ];
    for (const event of others) assert.equal(template?.read(event), undefined, event);
    const noted = (note: string): string => geminiEvent('two', {}).replace('{}', `{"note":"${note}"}`);
    for (const [note, broken] of [
      ['\\u0031', '\\u31'],
      ['\\\\', '\\'],
    ] as const) {
      assert.equal(template?.read(noted(note)), '"two"');
      assert.equal(template?.read(noted(broken)), undefined);
    }
  });

  it('GeminiTokenTemplate makes no template when the position of the token is uncertain', () => {
    const plain = geminiEvent('one', { totalTokenCount: 1 });
    for (const event of [
      plain.replace('"text"', '"functionResponse":{"text":"a"},"text"'),
      plain.replace('"modelVersion"', '"text"'),
      plain.replace('"modelVersion"', '"usageMetadata"'),
      plain.replace('{"totalTokenCount":1}', '{"note":"}"}'),
      geminiEvent('a "quoted" one', { totalTokenCount: 1 }),
      '{"candidates":[]}',
    ]) {
      assert.equal(GeminiTokenTemplate.from(event), undefined, event);
    }
  });
});
