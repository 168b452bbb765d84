import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { messages } from '../../../../api/endpoints/messages/messages.ts';
import { responseView } from '../../../../api/endpoints/responses/response-view.ts';
import type { ViewedJob } from '../../../../api/replies/view.ts';
import type { Frame, FrameType } from '../../../../shared/jobs/append.ts';

type Fields = Record<string, unknown>;

const count = 100_000;
const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };

function jobWith<Options extends object>(viewOptions: Options): ViewedJob<Options> {
  return { id: 'a'.repeat(32), model: 'm', createdAt: 0, viewOptions, link: (file) => file };
}

/** Chunks of a chat, and its end. */
function framesOf(deltas: readonly Fields[], reason = 'tool_calls'): Frame[] {
  const chunks = [...deltas, {}].map((delta, at) => {
    const choice = { index: 0, delta, finish_reason: at === deltas.length ? reason : null };
    return ['delta', { choices: [choice] }] as const;
  });
  const all: (readonly [FrameType, Fields])[] = [...chunks, ['end', { usage }]];
  return all.map(([type, fields], at) => ({ seq: at + 1, type, text: JSON.stringify(fields) }));
}

function callsWith(text: string): Fields[] {
  const callOf = (index: number): Fields => ({ index, id: `call_${index}`, function: { name: 'f', arguments: text } });
  return Array.from({ length: count }, (_, index) => callOf(index));
}

/** All in one chunk, and each in one of its own. */
function framesOfCalls(text: string): readonly Frame[][] {
  const calls = callsWith(text);
  return [framesOf([{ tool_calls: calls }]), framesOf(calls.map((call) => ({ tool_calls: [call] })))];
}

describe('an answer of a hundred thousand calls of tools', () => {
  it('is shown as a message, held and streamed', () => {
    const job = jobWith({ hidesThinking: false, stopSequences: [] });
    for (const frames of framesOfCalls('{}')) {
      const { content, stop_reason: reason } = JSON.parse(messages.view.held(job, frames)) as Fields;
      assert.equal(reason, 'tool_use');
      assert.equal((content as Fields[]).length, count);
      assert.equal((content as Fields[]).at(-1)?.id, `call_${count - 1}`);
      assert.ok(frames.flatMap(messages.view.stream(job)).length > 3 * count);
    }
  });

  it('is shown as a response, whether its calls are whole or cut off', () => {
    const job = jobWith({ echo: {}, include: [], afterInput: 0 });
    for (const text of ['{}', '{"a":']) {
      for (const frames of framesOfCalls(text)) {
        const { output } = JSON.parse(responseView.held(job, frames)) as { output: Fields[] };
        assert.equal(output.length, count);
        assert.deepEqual([output.at(-1)?.call_id, output.at(-1)?.arguments], [`call_${count - 1}`, text]);
      }
    }
  });
});

describe('a response over a chat', () => {
  const job = jobWith({ echo: {}, include: [], afterInput: 0 });
  const held = (deltas: readonly Fields[]): Fields[] =>
    (JSON.parse(responseView.held(job, framesOf(deltas))) as { output: Fields[] }).output;
  const piece = (index: number, text: string, name?: string): Fields => ({
    tool_calls: [{ index, function: { ...(name !== undefined && { name }), arguments: text } }],
  });

  it('with a call of megabytes that grows while the vendor begins thousands of others takes each piece once', () => {
    const pieces = Array.from({ length: 10_000 }, (_, at) => [
      piece(0, `${'}'.repeat(1000)}`),
      piece(at + 1, '{}', 'other'),
    ]);
    const output = held([piece(0, '{"a":"', 'long'), ...pieces.flat(), piece(0, '"}')]);
    assert.equal(output.length, 10_001);
    assert.equal(String(output[0]?.arguments).length, 8 + 10_000 * 1000);
  });

  it('ends a call before the next item once its arguments are a whole object, and only then', () => {
    for (const [pieces, isEndedBefore] of [
      [['{}'], true],
      [['{"a":', '{"b":"}\\"{"', '}', '}'], true],
      [['', '{}', '\n'], true],
      [['{}', '}'], false],
      [['{}', '{}'], false],
      [['{a}'], false],
      [['{"a":"}'], false],
      [['{"a":"\\', '"}'], false],
      [['[{}]'], false],
      [[' {}'], false],
    ] as const) {
      const [first = '', ...more] = pieces;
      const deltas = [piece(0, first, 'f'), ...more.map((text) => piece(0, text)), { content: 'Done.' }];
      const events = framesOf(deltas).flatMap(responseView.stream(job)).join('\n');
      const [done, said] = ['response.function_call_arguments.done', 'response.output_text.delta'].map((type) =>
        events.indexOf(`event: ${type}`),
      ) as [number, number];
      assert.equal(done < said, isEndedBefore, JSON.stringify(pieces));
    }
  });

  it('has the log probabilities of an answer whose vendor sent all of them at once', () => {
    const content = Array.from({ length: 200_000 }, () => ({ token: 'a', logprob: 0, bytes: [97], top_logprobs: [] }));
    const choice = {
      index: 0,
      message: { role: 'assistant', content: 'a' },
      logprobs: { content },
      finish_reason: 'stop',
    };
    const end: Frame = { seq: 1, type: 'end', text: JSON.stringify({ choices: [choice], usage }) };
    const { output } = JSON.parse(responseView.held(job, [end])) as {
      output: { content: { logprobs: unknown[] }[] }[];
    };
    assert.equal(output[0]?.content[0]?.logprobs.length, content.length);
  });
});
