import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { chatCompletions } from '../../../../api/endpoints/chat/chat-completions.ts';
import type { Endpoint } from '../../../../api/pipeline/endpoint.ts';
import type { ViewedJob } from '../../../../api/replies/view.ts';
import type { Frame, FrameType } from '../../../../shared/jobs/append.ts';

const { view }: Endpoint = chatCompletions;
const job: ViewedJob = {
  ...{ id: 'a'.repeat(32), model: 'm', createdAt: 0, stream: true },
  viewOptions: { includeUsage: false },
  link: (file) => file,
};

const call = (index: number, more: object = {}) => ({ index, id: `call_${index}`, type: 'function', ...more });
const delta = (fields: object, finish: string | null = null) => ({
  choices: [{ index: 0, delta: fields, finish_reason: finish }],
});
const framesOf = (...all: (readonly [FrameType, object])[]): Frame[] =>
  all.map(([type, fields], at) => ({ seq: at + 1, type, text: JSON.stringify(fields) }));

/** The indices of each event's calls, with the finish reason. */
function callsOf(frames: readonly Frame[]): unknown[] {
  const events = frames.flatMap(view.stream(job)).map((event) => event.replace(/^data: /, ''));
  assert.equal(events.pop(), '[DONE]');
  return events.map((event) => {
    const [{ delta: said, finish_reason: finish }] = JSON.parse(event).choices;
    return [(said.tool_calls ?? []).map(({ index }: { index: number }) => index), finish];
  });
}

const each = [
  [[0], null],
  [[1], null],
  [[2], 'tool_calls'],
];

describe('parallel tool calls in a streamed chat, of which LlamaIndex reads the first of a chunk', () => {
  it('are a chunk each where a held answer is shown to a streamed request', () => {
    const message = { role: 'assistant', content: null, tool_calls: [0, 1, 2].map((index) => call(index)) };
    const choices = [{ index: 0, message, finish_reason: 'tool_calls' }];
    assert.deepEqual(callsOf(framesOf(['end', { choices, usage: null }])), each);
  });

  it('are a chunk each where the stored answer is shown again, with the numbers of the last events', () => {
    const part = (index: number, text: string): readonly [FrameType, object] => [
      'delta',
      delta({ tool_calls: [call(index, { function: { name: 'f', arguments: text } })] }),
    ];
    const calls = [0, 1, 2].flatMap((index) => [part(index, '{"a":'), part(index, '1}')]);
    const frames = framesOf(...calls, ['delta', delta({}, 'tool_calls')], ['end', { usage: null }]);
    const kept = view.final?.(frames, job) ?? [];
    assert.deepEqual(callsOf(kept), each);
    assert.equal(view.held(job, kept), view.held(job, frames));
  });

  it('are stored as they came where joining them makes as many', () => {
    const calls = [0, 1].map((index) => ['delta', delta({ tool_calls: [call(index)] })] as const);
    const frames = framesOf(...calls, ['end', { usage: null }]);
    assert.deepEqual(view.final?.(frames, job), frames);
  });
});
