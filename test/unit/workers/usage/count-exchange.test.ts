import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { writeUnsignedThought } from '../../../../shared/capabilities/signed-thought.ts';
import { countExchange } from '../../../../workers/usage/count-exchange.ts';
import { countTexts } from '../../../../workers/usage/count-tokens.ts';

/** A legacy completion with `echo`, and the texts of its choices as far as they came. */
function counted(request: object, said: Readonly<Record<number, string>>, more: object = {}) {
  const frames = Object.entries(said).map(([index, text]) =>
    JSON.stringify({ choices: [{ index: Number(index), text }] }),
  );
  const length = frames.reduce((sum, frame) => sum + frame.length, 0);
  const whole = { endpoint: 'completions', request: JSON.stringify({ ...request, echo: true }), frames, length };
  return countExchange({ ...whole, largeLength: 0, ...more });
}

const filler = 'lorem ipsum dolor sit amet '.repeat(800);
const answer = ' answer word'.repeat(200);
const written = countTexts([answer]);

describe('countExchange of a completion with several prompts', () => {
  it('countExchange tells what each prompt and its choices have, and of none that was not sent', () => {
    const prompts = ['One.', filler, 'Three'];
    const said = { 0: `One.${answer}`, 2: filler, 3: filler + answer + answer, 4: 'Three' };
    const {
      prompt,
      completion,
      byPrompt = [],
    } = counted({ prompt: prompts, n: 2 }, said, { inputsSent: new Set([0, 1]) });
    assert.equal(prompt, countTexts(prompts.slice(0, 2)));
    assert.deepEqual(
      byPrompt.map((part) => part.completion),
      [Math.round(completion / 3), completion - Math.round(completion / 3)],
    );
    assert.equal(byPrompt[0]?.prompt, Math.round((prompt * 4) / (4 + filler.length)));
    assert.equal(
      byPrompt.reduce((sum, part) => sum + part.prompt, 0),
      prompt,
    );
  });

  it('countExchange counts those that were sent also behind one that was not, with their own choices', () => {
    const { prompt, byPrompt } = counted(
      { prompt: ['One.', filler] },
      { 0: filler, 1: answer },
      { inputsSent: new Set([1]) },
    );
    assert.equal(prompt, countTexts([filler]));
    assert.deepEqual(
      byPrompt?.map((part) => part.prompt),
      [prompt],
    );
  });

  it('countExchange tells nothing of the parts where there is one prompt', () => {
    assert.equal(counted({ prompt: 'One.' }, { 0: answer }).byPrompt, undefined);
    assert.equal(counted({ prompt: [7, 8] }, { 0: answer }).byPrompt, undefined);
  });
});

describe('countExchange of a completion with echo', () => {
  const about = (tokens: number, expected: number): void =>
    assert.ok(Math.abs(tokens - expected) <= 4, `${tokens}, not ${expected}`);

  it('countExchange subtracts the prompts that came before their choices, and no prompt whose choice has not begun', () => {
    const prompts = ['One.', 'Two, and more.', 'Three', 'Four'];
    const said = Object.fromEntries(prompts.map((prompt, index) => [index, prompt + answer]));
    about(counted({ prompt: prompts }, said).completion, 4 * written);
    about(counted({ prompt: [...prompts, filler] }, said).completion, 4 * written);
    about(counted({ prompt: [filler, ...prompts] }, { 1: `One.${answer}` }).completion, written);
    about(counted({ prompt: [filler, 'One.'] }, { 0: filler + answer, 1: `One.${answer}` }).completion, 2 * written);
  });

  it('countExchange subtracts a prompt for each of its choices that has begun', () => {
    const said = { 0: `One.${answer}`, 2: filler + answer, 3: filler };
    about(counted({ prompt: ['One.', filler], n: 2 }, said).completion, 2 * written);
    about(counted({ prompt: filler, n: 2 }, { 1: filler + answer }).completion, written);
  });

  it('countExchange subtracts no more of a prompt than its choice has said', () => {
    const said = { 0: filler.slice(0, 100), 1: `One.${answer}` };
    about(counted({ prompt: [filler, 'One.'] }, said).completion, written);
  });

  it('countExchange subtracts prompts of tokens, one or several', () => {
    const text = `word word word${answer}`;
    about(counted({ prompt: [7, 8, 9] }, { 0: text }).completion, written);
    about(counted({ prompt: [[7], [7, 8, 9], Array(20_000).fill(7)] }, { 1: text }).completion, written);
  });

  it('countExchange subtracts a prompt whose echo is in a frame that is too large to be read', () => {
    const more = { largeLength: filler.length };
    const large = Math.round(filler.length / 4);
    const rest = large - countTexts([filler]);
    about(counted({ prompt: filler }, { 0: answer }, more).completion, written + rest);
    about(counted({ prompt: filler }, {}, more).completion, rest);
    about(counted({ prompt: ['One.', filler] }, { 0: `One.${answer}` }, more).completion, written + large);
  });

  it('countExchange subtracts a prompt whole if not all of its choice was read', () => {
    const said = { 0: filler.slice(0, 1000) };
    const { completion } = counted({ prompt: filler }, said, { length: 60_000 });
    const { completion: unsaid } = counted({ prompt: 'One.' }, said, { length: 60_000 });
    about(completion, Math.max(0, unsaid - countTexts([filler])));
  });

  it('countExchange subtracts nothing from a chat that has the fields of a completion, whatever is in them', () => {
    const messages = [{ role: 'user', content: filler }];
    for (const prompt of [undefined, answer, { length: 1e12 }, 5]) {
      const { completion } = counted({ messages, prompt }, { 0: answer }, { endpoint: 'chat' });
      assert.equal(completion, written);
    }
  });
});

describe('countExchange of a response', () => {
  it('countExchange counts reasoning once that a chat is sent, whether an item has it as text, as a summary or only in its encrypted content', () => {
    const prompt = (...items: object[]): number => {
      const request = JSON.stringify({ input: [{ role: 'user', content: 'Go on.' }, ...items] });
      return countExchange({ endpoint: 'responses', request, frames: [], length: 0, largeLength: 0 }).prompt;
    };
    const carried = writeUnsignedThought(filler);
    const content = [{ type: 'reasoning_text', text: filler }];
    const summary = [{ type: 'summary_text', text: filler }];
    const thought = { type: 'reasoning', summary: [], encrypted_content: carried };
    const expected = prompt({ type: 'reasoning', summary: [], content });
    assert.ok(expected >= countTexts([filler]));
    assert.equal(prompt({ type: 'reasoning', summary }), expected);
    assert.equal(prompt(thought), expected);
    assert.equal(prompt({ ...thought, content }), expected);
    assert.equal(prompt({ ...thought, summary }), expected);
    assert.ok(prompt({ ...thought, encrypted_content: filler }) < 20);
  });
});
