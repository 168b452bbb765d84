import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parseObject } from '../../../workers/vendors/support/json-object.ts';

const tooMany = { name: 'ApiError', code: 'server_error', message: /JSON of too many values/ };

describe('parseObject', () => {
  it('parseObject reads no JSON that is mostly brackets, which takes many times its length and seconds', () => {
    const count = 2_000_000;
    for (const text of [
      `{"a":[${'{},'.repeat(count)}0]}`,
      `{"a":[${'[],'.repeat(count)}0]}`,
      `{"a":${'['.repeat(count)}${']'.repeat(count)}}`,
      '['.repeat(count),
    ]) {
      assert.throws(() => parseObject(text), tooMany);
    }
  });

  it('parseObject reads long answers as vendors send them: texts of code, and the most detailed log probabilities', () => {
    const code = 'if (list[index]) { call({ [key]: [value] }); }\n'.repeat(100_000);
    const token = { token: ' a', logprob: -0.12, bytes: [32, 97] };
    const content = Array.from({ length: 20_000 }, () => ({ ...token, top_logprobs: Array(20).fill(token) }));
    for (const answer of [{ code }, { content }]) {
      const text = JSON.stringify(answer);
      assert.equal(JSON.stringify(parseObject(text)), text);
    }
  });
});
