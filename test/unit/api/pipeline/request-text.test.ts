import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { parseChat } from '../../../../api/endpoints/chat/parse-chat.ts';
import { parseJson, rawJsonOf, requestText } from '../../../../api/http/body/parse-json.ts';
import { textOf } from '../../../../api/pipeline/request-text.ts';

/** Large enough that the texts of a body's long fields are kept. */
const filler = 'x'.repeat(70_000);

const bytes = (text: string): Buffer => Buffer.from(text);

/** A body that has `messages` as they are written here, and their text after parsing. */
function parsedMessages(messages: string): { value: unknown; raw: string | undefined } {
  const { messages: value } = parseJson(bytes(`{"model":"m","messages":${messages},"filler":"${filler}"}`));
  const raw = rawJsonOf(value);
  return { value, raw: raw && Buffer.from(raw).toString() };
}

const long = `{"role":"user","content":"${'Hello, \\"world\\"\\n'.repeat(400)}"}`;

describe('the text of a request', () => {
  it('a long field that is as its caller wrote it is copied', () => {
    assert.equal(parsedMessages(`[${long}]`).raw, `[${long}]`);
  });

  it('a field with a repeated key is serialized again, so that a vendor sees the value that was checked', () => {
    for (const messages of [
      `[${long},{"role":"user","content":"a","content":"b"}]`,
      `[${long},{"role":"user","content":[{"type":"file","file":{"file_id":"stolen"},"file":{}}]}]`,
    ]) {
      const { value, raw } = parsedMessages(messages);
      assert.equal(raw, undefined);
      assert.deepEqual(JSON.parse(textOf(requestText({ messages: value }))), { messages: value });
    }
  });

  it('of a repeated field of the request itself only the last counts, also if it is short', () => {
    const body = bytes(`{"messages":[${long}],"filler":"${filler}","messages":[{"role":"user"}]}`);
    const request = parseJson(body);
    assert.equal(rawJsonOf(request.messages), undefined);
    const other = bytes(`{"messages":[${long}],"filler":"${filler}","mess\\u0061ges":[${long},${long}]}`);
    assert.equal(Buffer.from(rawJsonOf(parseJson(other).messages) ?? []).toString(), `[${long},${long}]`);
  });

  it('a field from which a null was removed is serialized again', () => {
    const body = { model: 'm', messages: [{ role: 'user', content: filler, name: null }], temperature: null };
    const text = textOf(parseChat(bytes(JSON.stringify(body))).request);
    assert.deepEqual(JSON.parse(text), { messages: [{ role: 'user', content: filler }] });
  });

  it('a field with escaped characters, or with spaces that could hide a key from a search, is serialized again', () => {
    assert.equal(parsedMessages(`[${long},{"role":"user","reasoning_content" :"x"}]`).raw, undefined);
    assert.equal(parsedMessages(`[${long},"${'\\u4e2d'.repeat(1000)}"]`).raw, undefined);
    assert.equal(parsedMessages(`[${`${' '.repeat(50)}{"role":"user"},`.repeat(400)}${long}]`).raw, undefined);
  });

  it('a request says the same whether its fields were copied or serialized, whatever they hold', () => {
    const text = fc.string({
      unit: fc.constantFrom('"', '\\', 'a', 'null', ':', '{', ']', ',', '\n', 'ü', '中', '😀'),
    });
    const value = fc.letrec((tie) => ({
      value: fc.oneof(
        { maxDepth: 4 },
        ...[
          text,
          fc.constant(null),
          fc.double({ noNaN: true }),
          fc.array(tie('value')),
          fc.dictionary(text, tie('value')),
        ],
      ),
    })).value;
    fc.assert(
      fc.property(fc.array(value), fc.dictionary(text, value), (messages, others) => {
        const whole = { ...others, messages: [...messages, 'y'.repeat(5000)], filler };
        const expected = JSON.parse(JSON.stringify(whole)) as Record<string, unknown>;
        const hasPrototype = /"__proto__"|"constructor"|ur[il]s?"/.test(JSON.stringify(whole));
        fc.pre(!hasPrototype);
        const parsed = parseJson(bytes(JSON.stringify(whole)));
        assert.equal(typeof requestText(parsed), 'object', 'it is copied');
        assert.deepEqual(JSON.parse(textOf(requestText(parsed))), expected);
      }),
    );
  });
});
