import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { hasImpossibleAmount, maxAmount } from '../../../../shared/money/token-counts.ts';
import { boundExchange } from '../../../../workers/usage/bound-usage.ts';
import { countExchange } from '../../../../workers/usage/count-exchange.ts';
import { pathsOf, replaced } from '../../../support/replaced-values.ts';

const chat = (content: string) => JSON.stringify({ model: 'm', messages: [{ role: 'user', content }] });
const chunk = (content: string) => JSON.stringify({ id: 'chatcmpl-1', choices: [{ index: 0, delta: { content } }] });

function exchange(prompt: string, said: readonly string[]) {
  const frames = said.map(chunk);
  const length = frames.reduce((sum, frame) => sum + frame.length, 0);
  return { endpoint: 'chat', request: chat(prompt), frames, length, largeLength: 0 };
}

const texts = {
  English: 'The quick brown fox jumps over the lazy dog, and then it goes home to sleep until the morning. ',
  German: 'Die Würde des Menschen ist unantastbar. Sie zu achten und zu schützen ist Verpflichtung aller Gewalt. ',
  Chinese: '人人生而自由,在尊严和权利上一律平等。他们赋有理性和良心,并应以兄弟关系的精神相对待。',
  code: 'for (const [index, value] of values.entries()) { total += value * weights[index]; }\n',
};

describe('boundExchange', () => {
  for (const [of, text] of Object.entries(texts)) {
    it(`boundExchange is at least the count and at most four times as much, for ${of}`, () => {
      const whole = exchange(text.repeat(20), [text, text, text]);
      const [counted, bound] = [countExchange(whole), boundExchange(whole)];
      assert.ok(
        bound.prompt >= counted.prompt && bound.prompt <= 4 * counted.prompt,
        `${bound.prompt} ${counted.prompt}`,
      );
      assert.ok(bound.completion >= counted.completion, `${bound.completion} ${counted.completion}`);
      assert.ok(bound.completion <= 4 * counted.completion, `${bound.completion} ${counted.completion}`);
    });
  }

  for (const [endpoint, name] of [
    ['embeddings', 'input'],
    ['completions', 'prompt'],
  ] as const) {
    it(`boundExchange counts of many inputs of ${endpoint} those that were sent`, () => {
      const whole = (inputs: unknown) => ({
        ...{ ...exchange('', []), endpoint },
        request: JSON.stringify({ model: 'm', [name]: inputs }),
      });
      for (const input of [texts.English, Array.from({ length: 20 }, (_, index) => index)]) {
        const many = whole(Array.from({ length: 100 }, () => input));
        const sent = boundExchange({ ...many, inputsSent: new Set([0, 1, 2]) });
        assert.deepEqual(sent, boundExchange(whole([input, input, input])));
        assert.ok(
          sent.prompt >= countExchange({ ...many, inputsSent: new Set([0, 1, 2]) }).prompt && sent.prompt < 300,
          `${sent.prompt}`,
        );
        assert.ok(boundExchange(many).prompt > 10 * sent.prompt);
        // Tokens of a single one are no inputs.
        assert.deepEqual(boundExchange({ ...whole(input), inputsSent: new Set([0]) }), boundExchange(whole(input)));
      }
    });
  }

  it('boundExchange tells what each prompt of a completion has of its bound, as a count does: prices by length are those of each', () => {
    const prompt = [texts.English.repeat(10), texts.English.repeat(30), texts.English];
    const frames = [0, 1].map((index) => JSON.stringify({ choices: [{ index, text: texts.German }] }));
    const length = frames.reduce((sum, frame) => sum + frame.length, 0);
    const request = JSON.stringify({ model: 'm', prompt });
    const whole = { endpoint: 'completions', request, frames, length, largeLength: 0, inputsSent: new Set([0, 1]) };
    for (const said of [frames, ['no JSON']]) {
      const { prompt: read, completion, byPrompt = [] } = boundExchange({ ...whole, frames: said });
      const [first, second, ...others] = byPrompt;
      assert.deepEqual(others, []);
      assert.deepEqual([first?.prompt, second?.prompt], [Math.round(read / 4), read - Math.round(read / 4)]);
      assert.equal(Number(first?.completion) + Number(second?.completion), completion);
    }
    const one = { ...whole, request: JSON.stringify({ model: 'm', prompt: texts.English }) };
    assert.equal(boundExchange(one).byPrompt, undefined);
  });

  it('boundExchange counts an image in the request as a page, not by its bytes', () => {
    const url = `data:image/png;base64,${'A'.repeat(3_000_000)}`;
    const request = JSON.stringify({
      messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }],
    });
    const { prompt } = boundExchange({ ...exchange('', []), request });
    assert.ok(prompt >= 2000 && prompt < 3000, `${prompt}`);
  });

  it('boundExchange counts a sound and a document by their length', () => {
    const data = 'A'.repeat(3_300_000);
    for (const part of [
      { type: 'input_audio', input_audio: { data, format: 'mp3' } },
      { type: 'file', file: { file_data: `data:application/pdf;base64,${data}` } },
    ]) {
      const request = JSON.stringify({ messages: [{ role: 'user', content: [part] }] });
      const { prompt } = boundExchange({ ...exchange('', []), request });
      assert.ok(prompt >= 100_000 && prompt < 101_000, `${prompt}`);
    }
  });

  it('boundExchange extrapolates omitted parts of a long answer, and counts unreadable frames by their length', () => {
    const part = exchange('Hi', ['word '.repeat(100)]);
    const whole = boundExchange({ ...part, length: part.length * 10 });
    assert.ok(Math.abs(whole.completion - 10 * boundExchange(part).completion) <= 10);
    const { completion } = boundExchange({ ...part, frames: ['{"choices":[null]}', 'x'.repeat(300)], length: 318 });
    assert.equal(completion, 106);
  });
});

describe('counts of reasoning', () => {
  it('countExchange and boundExchange count reasoning once, whichever of its names a vendor has', () => {
    const thought = 'The quick brown fox jumps over the lazy dog.';
    const of = (delta: object) => {
      const frames = [JSON.stringify({ choices: [{ index: 0, delta }] })];
      return { endpoint: 'chat', request: chat('Hi'), frames, length: frames[0]?.length ?? 0, largeLength: 0 };
    };
    for (const count of [countExchange, boundExchange]) {
      const expected = count(of({ reasoning_content: thought }));
      assert.ok(expected.reasoning > 5 && expected.completion >= expected.reasoning);
      assert.deepEqual(count(of({ reasoning: thought })), expected);
      assert.deepEqual(count(of({ reasoning: thought, reasoning_content: thought })), expected);
    }
  });
});

describe('hasImpossibleAmount', () => {
  const usages: readonly (readonly [usage: Record<string, unknown>, isImpossible: boolean])[] = [
    [{ prompt_tokens: 3, completion_tokens: 0, total_tokens: 3 }, false],
    [{ prompt_tokens: maxAmount }, false],
    [{ prompt_tokens: maxAmount + 1 }, true],
    [{ prompt_tokens: 1e15 }, true],
    [{ completion_tokens: -1 }, true],
    [{ output_tokens: 0.5 }, true],
    [{ total_tokens: Number.NaN }, true],
    [{ prompt_tokens: 3, prompt_tokens_details: { cached_tokens: 1e18 } }, true],
    [{ output_tokens: 3, output_tokens_details: { reasoning_tokens: -5 } }, true],
    [{ type: 'duration', seconds: 2.5 }, false],
    [{ type: 'duration', seconds: 1e303 }, true],
    [{ type: 'duration', seconds: Number.POSITIVE_INFINITY }, true],
    // A vendor's own extras, and what is no number.
    [{ prompt_tokens: 3, cost: 0.25, queue_time: 0.017, cost_in_usd_ticks: 5e10 }, false],
    [{ prompt_tokens: null, prompt_tokens_details: null, completion_tokens_details: {} }, false],
  ];
  for (const [usage, isImpossible] of usages) {
    it(`hasImpossibleAmount returns ${isImpossible ? 'true' : 'false'} for ${JSON.stringify(usage)}`, () => {
      assert.equal(hasImpossibleAmount(usage), isImpossible);
    });
  }

  it('hasImpossibleAmount checks the quantities too', () => {
    assert.equal(hasImpossibleAmount(null, { seconds: 8.5, images: undefined }), false);
    for (const seconds of [-1, Number.NaN, Number.POSITIVE_INFINITY, 1e303]) {
      assert.equal(hasImpossibleAmount(null, { seconds }), true);
    }
  });
});

describe('countExchange', () => {
  it('countExchange counts the text beside a frame with an arbitrary value in any one position', () => {
    const call = { index: 0, id: 'a', function: { name: 'f', arguments: '{}' } };
    const said = {
      content: 'a',
      refusal: 'b',
      reasoning_content: 'c',
      tool_calls: [call],
      function_call: { name: 'f' },
    };
    const item = { type: 'message', name: 'f', summary: [{ text: 'a' }], content: [{ text: 'b' }] };
    const samples = [
      { choices: [{ index: 0, text: 'a', delta: said, message: said }] },
      { type: 'response.output_text.delta', delta: 'a', output_index: 0, item },
      { response: { output: [item] } },
    ];
    const hostile: readonly unknown[] = [null, 7, 'x', [], {}, [null], { toString: null, valueOf: null }];
    const { completion: fewest } = countExchange(exchange('Hi', [texts.English]));
    for (const sample of samples) {
      for (const path of pathsOf(sample)) {
        for (const value of hostile) {
          const whole = exchange('Hi', [texts.English]);
          const frames = [JSON.stringify(replaced(sample, path, value)), ...whole.frames];
          const length = frames.reduce((sum, frame) => sum + frame.length, 0);
          const { completion } = countExchange({ ...whole, frames, length });
          assert.ok(completion >= fewest, `${path.join('.')} = ${JSON.stringify(value)}: ${completion}`);
        }
      }
    }
  });
});
