import assert from 'node:assert/strict';
import { it } from 'node:test';
import { chatChunkChoice, foldChatCompletion } from '../../../../api/endpoints/chat/fold-chat-completion.ts';
import { foldCompletion } from '../../../../api/endpoints/completions/fold-completion.ts';
import type { Frame } from '../../../../shared/jobs/append.ts';

type Fields = Record<string, unknown>;

/** The only choice that deltas add up to, and the same after it became one chunk. */
function folded(...choices: Fields[]): Fields {
  const frames = choices.map(
    (choice, at): Frame => ({ seq: at + 1, type: 'delta', text: JSON.stringify({ choices: [choice] }) }),
  );
  const [choice] = foldChatCompletion(frames).choices as [Fields];
  const chunk = { choices: [chatChunkChoice(choice)] };
  const again = foldChatCompletion([{ seq: 1, type: 'delta', text: JSON.stringify(chunk) }]).choices;
  assert.deepEqual(again, [choice]);
  return choice;
}

const delta = (said: Fields): Fields => ({ index: 0, delta: said, finish_reason: null });

it('the fold of a streamed chat keeps the annotations, and other lists, of all its chunks', () => {
  const [one, two] = [
    { type: 'url_citation', url_citation: { url: 'a' } },
    { type: 'url_citation', url_citation: { url: 'b' } },
  ];
  const { message } = folded(
    delta({ content: 'A' }),
    delta({ annotations: [one] }),
    delta({ content: 'B', annotations: [two] }),
  );
  assert.deepEqual(message, { role: 'assistant', content: 'AB', refusal: null, annotations: [one, two] });
});

it('the fold of a streamed chat keeps a spoken answer whole, whatever the pieces of its data', () => {
  const spoken = Buffer.from('a long sound, in pieces');
  const pieces = [spoken.subarray(0, 4), spoken.subarray(4, 9), spoken.subarray(9, 15), spoken.subarray(15)];
  const { message } = folded(
    delta({ role: 'assistant', audio: { id: 'audio_1' } }),
    delta({ audio: { transcript: 'Hel' } }),
    ...pieces.map((piece) => delta({ audio: { data: piece.toString('base64') } })),
    delta({ audio: { transcript: 'lo.' } }),
    delta({ audio: { expires_at: 1_800_000_000 } }),
  );
  assert.deepEqual((message as Fields).audio, {
    ...{ id: 'audio_1', transcript: 'Hello.', data: spoken.toString('base64'), expires_at: 1_800_000_000 },
  });
});

it("the fold of a streamed chat keeps a choice's own fields, such as where a vendor stopped", () => {
  const choice = folded(
    { ...delta({ content: 'A' }), content_filter_results: { hate: { filtered: false } } },
    { ...delta({}), finish_reason: 'stop', stop_reason: '###', content_filter_results: null },
  );
  assert.equal(choice.stop_reason, '###');
  assert.deepEqual(choice.content_filter_results, { hate: { filtered: false } });
});

/** Seconds of the processor for folding so many chunks with one choice. */
function secondsOf(fold: (frames: readonly Frame[]) => Fields, choice: Fields, tokens: number): number {
  const text = JSON.stringify({ choices: [{ index: 0, ...choice }] });
  const frames = Array.from({ length: tokens }, (_, at): Frame => ({ seq: at + 1, type: 'delta', text }));
  const { user } = process.cpuUsage();
  const [{ logprobs }] = fold(frames).choices as [{ logprobs: Record<string, unknown[] | null> }];
  assert.equal((logprobs.content ?? logprobs.tokens)?.length, tokens);
  return (process.cpuUsage().user - user) / 1e6;
}

const entry = { token: 'a', logprob: -0.5, bytes: [97], top_logprobs: [] };
for (const { kind, fold, choice } of [
  { kind: 'chat', fold: foldChatCompletion, choice: { delta: { content: 'a' }, logprobs: { content: [entry] } } },
  {
    kind: 'legacy completion',
    fold: foldCompletion,
    choice: { text: 'a', logprobs: { tokens: ['a'], top_logprobs: [{ a: -0.5 }] } },
  },
]) {
  it(`the fold of a streamed ${kind} takes time in proportion to its log probabilities, however many there are`, () => {
    secondsOf(fold, choice, 1000);
    const [few, many] = [secondsOf(fold, choice, 5000), secondsOf(fold, choice, 60_000)];
    assert.ok(many < 40 * few, `${few} s for 5,000 tokens, ${many} s for 60,000`);
  });
}

it('the folds of streamed chats and legacy completions take chunks with fields of ever new names', () => {
  const count = 20_000;
  const frames = Array.from({ length: count }, (_, at): Frame => {
    const field = { [`field_${at}`]: at };
    const delta = { content: 'a', audio: field };
    const choice = { index: 0, delta, text: 'a', logprobs: field, finish_reason: null };
    return { seq: at + 1, type: 'delta', text: JSON.stringify({ ...field, choices: [choice] }) };
  });
  for (const fold of [foldChatCompletion, foldCompletion]) {
    const { choices, ...rest } = fold(frames);
    const [choice] = choices as Fields[];
    const { audio } = (choice?.message ?? {}) as { audio?: Fields };
    assert.equal(Object.keys(rest).length, count);
    assert.equal(Object.keys(audio ?? (choice?.logprobs as Fields)).length, count);
  }
});

it('the fold of a streamed chat looks at no spoken answer anew for each of its pieces', () => {
  const piece = Buffer.alloc(100, 1).toString('base64');
  const frames = Array.from({ length: 100_000 }, (_, at): Frame => {
    const choices = [{ index: 0, delta: { audio: { data: piece } } }];
    return { seq: at + 1, type: 'delta', text: JSON.stringify({ choices }) };
  });
  const { user } = process.cpuUsage();
  const [{ message }] = foldChatCompletion(frames).choices as [{ message: { audio: { data: string } } }];
  assert.ok(process.cpuUsage().user - user < 10e6);
  assert.ok(Buffer.from(message.audio.data, 'base64').equals(Buffer.alloc(10_000_000, 1)));
});
