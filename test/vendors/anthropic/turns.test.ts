import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { toMessageRequest } from '../../../workers/vendors/anthropic/request.ts';

type Fields = Record<string, unknown>;

const said = (text: string): Fields => ({ type: 'text', text });
const user = (...content: Fields[]): Fields => ({ role: 'user', content });
const assistant = (...content: Fields[]): Fields => ({ role: 'assistant', content });
const mark = { cache_control: { type: 'ephemeral' } };
const png = 'iVBORw0KGgo=';
const toolCall = (id: string, name: string, text: string): Fields => ({
  id,
  type: 'function',
  function: { name, arguments: text },
});

/** The system prompt and the turns that messages become; a system message may stand among them unless the model is older. */
function turnsOf(messages: readonly Fields[], model = 'claude-opus-5-5'): { system: unknown; messages: unknown } {
  const sent = JSON.parse(toMessageRequest({ model, stream: false, request: JSON.stringify({ messages }) }));
  return { system: sent.system, messages: sent.messages };
}

function refuses(messages: readonly Fields[], param: string): void {
  assert.throws(() => turnsOf(messages), { name: 'ApiError', code: 'invalid_request_error', param });
}

describe('chat messages as Anthropic messages', () => {
  it("system and developer messages before the first message become Anthropic's system prompt, with cache marks", () => {
    const messages = [
      { role: 'system', content: 'Be brief.', name: 'operator' },
      { role: 'developer', content: [{ ...said('Be kind.'), ...mark }, said('')] },
      { role: 'user', content: 'Hello!' },
    ];
    assert.deepEqual(turnsOf(messages), {
      system: [said('Be brief.'), { ...said('Be kind.'), ...mark }],
      messages: [user(said('Hello!'))],
    });
  });

  it('a later system message follows the nearest user message, or joins the system prompt of an older model', () => {
    const system = { role: 'system', content: 'Read only.' };
    const placed = { role: 'system', content: [said('Read only.')] };
    const hello = { role: 'user', content: 'Hello!' };
    const hi = { role: 'assistant', content: 'Hi!' };
    const calling = { role: 'assistant', content: null, tool_calls: [toolCall('c1', 'f', '{}')] };
    const result = { role: 'tool', tool_call_id: 'c1', content: 'done' };
    const use = assistant({ type: 'tool_use', id: 'c1', name: 'f', input: {} });
    const done = user({ type: 'tool_result', tool_use_id: 'c1', content: [said('done')] });
    const cases: [Fields[], Fields[]][] = [
      [
        [hello, system],
        [user(said('Hello!')), placed],
      ],
      [
        [hello, system, hi, hello],
        [user(said('Hello!')), placed, assistant(said('Hi!')), user(said('Hello!'))],
      ],
      [
        [hello, system, hello],
        [user(said('Hello!'), said('Hello!')), placed],
      ],
      [
        [hello, hi, system, hello],
        [user(said('Hello!')), assistant(said('Hi!')), user(said('Hello!')), placed],
      ],
      [
        [hello, calling, system, result],
        [user(said('Hello!')), use, done, placed],
      ],
    ];
    for (const [messages, expected] of cases) {
      assert.deepEqual(turnsOf(messages), { system: undefined, messages: expected });
      const older = expected.filter(({ role }) => role !== 'system');
      assert.deepEqual(turnsOf(messages, 'claude-sonnet-5'), { system: [said('Read only.')], messages: older });
    }
    // No turn of the user's is next to it.
    assert.deepEqual(turnsOf([hello, hi, system, hi]), {
      system: [said('Read only.')],
      messages: [user(said('Hello!')), assistant(said('Hi!')), assistant(said('Hi!'))],
    });
  });

  it('a chat of system messages alone becomes a user message for Anthropic', () => {
    assert.deepEqual(turnsOf([{ role: 'system', content: 'Say hello.' }]), {
      system: undefined,
      messages: [user(said('Say hello.'))],
    });
  });

  it('JSON without a schema is asked of Claude at the end of the system prompt, whatever the conversation is', () => {
    const brief = { role: 'system', content: 'Be brief.' };
    const asked = (messages: readonly Fields[]): { system: Fields[]; messages: Fields[] } => {
      const request = JSON.stringify({ messages, response_format: { type: 'json_object' } });
      return JSON.parse(toMessageRequest({ model: 'claude-opus-5', stream: false, request }));
    };
    const hello = { role: 'user', content: 'Hello!' };
    const alone = asked([hello]).system;
    assert.equal(alone.length, 1);
    assert.match(String(alone[0]?.text), /one JSON object/);
    const { system, messages } = asked([brief, hello, brief]);
    assert.deepEqual(system, [said('Be brief.'), ...alone]);
    assert.deepEqual(messages, turnsOf([brief, hello, brief], 'claude-opus-5').messages);
    assert.deepEqual(asked([brief]).messages, [user(said('Be brief.'))]);
    assert.deepEqual(asked([brief]).system, alone);
  });

  it('parallel tool calls keep their ids for Anthropic, and their results join the next user message', () => {
    const messages = [
      { role: 'user', content: 'Weather and time?' },
      {
        role: 'assistant',
        content: 'I look.',
        tool_calls: [
          toolCall('call_1', 'get_weather', '{"city":"Łódź"}'),
          { ...toolCall('functions.get_time:1', 'get_time', ''), ...mark },
        ],
      },
      { role: 'tool', tool_call_id: 'call_1', content: [said('Cold,'), { ...said('very.'), ...mark }] },
      { role: 'tool', tool_call_id: 'functions.get_time:1', content: '' },
      { role: 'user', content: 'And now?' },
    ];
    assert.deepEqual(turnsOf(messages).messages, [
      user(said('Weather and time?')),
      assistant(
        said('I look.'),
        { type: 'tool_use', id: 'call_1', name: 'get_weather', input: { city: 'Łódź' } },
        { type: 'tool_use', id: 'functions_get_time_1', name: 'get_time', input: {}, ...mark },
      ),
      user(
        { type: 'tool_result', tool_use_id: 'call_1', content: [said('Cold,'), said('very.')], ...mark },
        { type: 'tool_result', tool_use_id: 'functions_get_time_1' },
        said('And now?'),
      ),
    ]);
  });

  it('tool arguments that are no object are wrapped as INVALID_JSON for Anthropic', () => {
    for (const text of ['{"a":', '[1]', '"a"', 'null']) {
      const calls = [toolCall('c1', 'f', text)];
      const [, turn] = turnsOf([
        { role: 'user', content: 'Hi' },
        { role: 'assistant', tool_calls: calls },
      ]).messages as [Fields, Fields];
      assert.deepEqual(turn, assistant({ type: 'tool_use', id: 'c1', name: 'f', input: { INVALID_JSON: text } }));
    }
  });

  it('images and PDFs reach Anthropic by URL or in base64, and texts as documents', () => {
    const file = (filename: string | undefined, type: string, data: string): Fields => ({
      type: 'file',
      file: { ...(filename !== undefined && { filename }), file_data: `data:${type};base64,${data}` },
    });
    const text = Buffer.from('Zażółć').toString('base64');
    const content = [
      { type: 'image_url', image_url: { url: 'https://example.com/a.png', detail: 'low' }, ...mark },
      { type: 'image_url', image_url: { url: `data:image/PNG;base64,${png}` } },
      { type: 'image_url', image_url: { url: 'data:image/jpg;base64,AAAA' } },
      { type: 'image_url', image_url: { url: `data:image/jpeg;base64,${png}` } },
      file('report.pdf', 'application/pdf', 'JVBERi0='),
      file(undefined, 'application/pdf', 'JVBERi0='),
      file('notes.txt', 'text/plain;charset=utf-8', text),
      { type: 'file', file: { filename: 'linked.pdf', file_data: 'https://example.com/a.pdf' } },
    ];
    const pdf = { type: 'base64', media_type: 'application/pdf', data: 'JVBERi0=' };
    const sent = turnsOf([{ role: 'user', content }]).messages;
    assert.deepEqual(sent, [
      user(
        { type: 'image', source: { type: 'url', url: 'https://example.com/a.png' }, ...mark },
        { type: 'image', source: { type: 'base64', media_type: 'image/png', data: png } },
        { type: 'image', source: { type: 'base64', media_type: 'image/jpeg', data: 'AAAA' } },
        // Not what its URL says, which Anthropic would refuse.
        { type: 'image', source: { type: 'base64', media_type: 'image/png', data: png } },
        { type: 'document', source: pdf, title: 'report' },
        { type: 'document', source: pdf },
        {
          type: 'document',
          source: { type: 'text', media_type: 'text/plain', data: 'Zażółć' },
          title: 'notes.txt',
        },
        { type: 'document', source: { type: 'url', url: 'https://example.com/a.pdf' }, title: 'linked' },
      ),
    ]);
  });

  it('content that Anthropic cannot take is rejected with its path', () => {
    const part = (content: Fields): Fields[] => [{ role: 'user', content: [said('Hi'), content] }];
    const place = 'messages[0].content[1]';
    refuses(part({ type: 'input_audio', input_audio: { data: '', format: 'wav' } }), place);
    refuses(part({ type: 'image_url', image_url: { url: 'file:///etc/passwd' } }), `${place}.image_url.url`);
    refuses(part({ type: 'image_url', image_url: { url: 'data:image/png,raw' } }), `${place}.image_url.url`);
    refuses(part({ type: 'file', file: { file_id: 'file-1' } }), `${place}.file.file_id`);
    refuses(part({ type: 'file', file: {} }), `${place}.file`);
    refuses(part({ type: 'file', file: { file_data: 'data:application/zip;base64,UEs=' } }), `${place}.file.file_data`);
    refuses(part({ type: 'file', file: { file_data: 'JVBERi0=' } }), `${place}.file.file_data`);
    refuses([{ role: 'function', name: 'f', content: '1' }], 'messages[0]');
    refuses([{ role: 'assistant', audio: { id: 'a' } }], 'messages[0].audio');
    refuses([{ role: 'assistant', function_call: { name: 'f', arguments: '' } }], 'messages[0].function_call');
    const custom = { id: 'c', type: 'custom', custom: { name: 'c', input: '' } };
    refuses([{ role: 'assistant', tool_calls: [custom] }], 'messages[0].tool_calls[0]');
  });

  it('signed thinking returns to Anthropic first and unchanged, without unsigned thinking and empty messages', () => {
    const signed = { type: 'thinking', thinking: 'Hm.', signature: 'EqQ=' };
    const redacted = { type: 'redacted_thinking', data: 'Emw=' };
    const hello = { role: 'user', content: 'Hello!' };
    const messages = [
      hello,
      {
        role: 'assistant',
        content: 'Hi!',
        reasoning_content: 'Hm.',
        thinking_blocks: [signed, redacted, { type: 'thinking', thinking: 'No.', signature: '' }, null],
        refusal: 'Not that.',
      },
      hello,
      { role: 'assistant', content: '', reasoning_content: "Another vendor's." },
    ];
    assert.deepEqual(turnsOf(messages).messages, [
      user(said('Hello!')),
      assistant(signed, redacted, said('Hi!'), said('Not that.')),
      user(said('Hello!')),
    ]);
    assert.deepEqual(
      turnsOf([hello, { role: 'assistant', content: 'Hi!', thinking_blocks: [{ ...signed, thinking: '' }] }]).messages,
      [user(said('Hello!')), assistant({ ...signed, thinking: '' }, said('Hi!'))],
    );
  });

  it('thoughts return to Anthropic where they stood in the text of a held answer', () => {
    const first = { type: 'thinking', thinking: 'Hm.', signature: 'EqQ=' };
    const second = { type: 'redacted_thinking', data: 'Emw=' };
    const message = { role: 'assistant', content: 'I look. Now I see.', thinking_blocks: [first, second] };
    const expected = assistant(first, said('I look.'), second, said(' Now I see.'));
    assert.deepEqual(turnsOf([{ ...message, thinking_offsets: [0, 7] }]).messages, [expected]);
    const parts = [said('I look.'), { ...said(' Now I see.'), ...mark }];
    assert.deepEqual(turnsOf([{ ...message, content: parts, thinking_offsets: [3, 18] }]).messages, [
      assistant(said('I l'), first, said('ook.'), { ...said(' Now I see.'), ...mark }, second),
    ]);
    // What is no list of positions says nothing.
    for (const offsets of [undefined, 'x', [-1, null], ['a', {}]]) {
      assert.deepEqual(turnsOf([{ ...message, thinking_offsets: offsets }]).messages, [
        assistant(first, second, said('I look. Now I see.')),
      ]);
    }
  });

  it('an answer of very many texts and thoughts is translated in time in proportion to them', () => {
    const count = 60_000;
    const content = Array.from({ length: count }, () => said('a'));
    const thoughts = Array.from({ length: count }, () => ({ type: 'redacted_thinking', data: 'Emw=' }));
    for (const offsets of [undefined, thoughts.map((_, index) => index)]) {
      const message = { role: 'assistant', content, thinking_blocks: thoughts, thinking_offsets: offsets };
      const [turn] = turnsOf([message]).messages as { content: unknown[] }[];
      assert.equal(turn?.content.length, 2 * count);
    }
  });

  it('an answer that Claude shall continue loses the white space at its end, which Anthropic refuses there alone', () => {
    const hello = { role: 'user', content: 'Hello!' };
    const begun = { role: 'assistant', content: 'The answer is: \n' };
    assert.deepEqual(turnsOf([hello, begun, hello, begun]).messages, [
      user(said('Hello!')),
      assistant(said('The answer is: \n')),
      user(said('Hello!')),
      assistant(said('The answer is:')),
    ]);
    const parts = { role: 'assistant', content: [said('One. '), { ...said('Two. '), ...mark }] };
    assert.deepEqual(turnsOf([hello, parts]).messages, [
      user(said('Hello!')),
      assistant(said('One. '), { ...said('Two.'), ...mark }),
    ]);
  });

  it('blank text, which Anthropic refuses, is left out, also beside calls and thoughts', () => {
    const thought = { type: 'thinking', thinking: 'Hm.', signature: 'EqQ=' };
    const calls = [toolCall('c1', 'f', '{}')];
    const turns = turnsOf([
      { role: 'system', content: ' ' },
      { role: 'user', content: [said('\n'), said('Go.')] },
      { role: 'assistant', content: '\n\n', tool_calls: calls },
      { role: 'tool', tool_call_id: 'c1', content: ' ' },
      { role: 'assistant', content: '\n\nDone.', thinking_blocks: [thought], thinking_offsets: [2] },
    ]);
    assert.deepEqual(turns, {
      system: undefined,
      messages: [
        user(said('Go.')),
        assistant({ type: 'tool_use', id: 'c1', name: 'f', input: {} }),
        user({ type: 'tool_result', tool_use_id: 'c1' }),
        assistant(thought, said('Done.')),
      ],
    });
  });
});
