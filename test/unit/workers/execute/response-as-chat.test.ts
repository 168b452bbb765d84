import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ApiError } from '../../../../shared/errors.ts';
import { translate } from '../../../support/response-as-chat.ts';

type Fields = Record<string, unknown>;

const messagesOf = (...input: unknown[]) => translate({}, input).messages;
const user = (content: unknown) => ({ role: 'user', content });
const assistant = (content: unknown, more: Fields = {}) => ({ role: 'assistant', content, ...more });
const outputText = (text: string) => ({
  type: 'output_text',
  text,
  annotations: [{ type: 'url_citation' }],
  logprobs: [],
});
const said = (...texts: string[]) => ({
  ...{ id: 'msg_1', type: 'message', status: 'completed', phase: 'commentary', role: 'assistant' },
  content: texts.map(outputText),
});
const call = (id: string, name = 'get_weather', more: Fields = {}) => ({
  ...{ type: 'function_call', id: 'fc_1', status: 'completed', call_id: id, name, arguments: '{"city":"Łódź"}' },
  ...more,
});
const output = (id: string, value: unknown) => ({ type: 'function_call_output', call_id: id, output: value });
const toolCall = (id: string, name = 'get_weather', given = '{"city":"Łódź"}') => ({
  id,
  type: 'function',
  function: { name, arguments: given },
});
const tool = (id: string, content: string) => ({ role: 'tool', tool_call_id: id, content });
const reasoning = (fields: Fields) => ({ type: 'reasoning', id: 'rs_1', summary: [], ...fields });
const summary = (...texts: string[]) => texts.map((text) => ({ type: 'summary_text', text }));

/** Input items and the messages they become, by what is special about them. */
const conversations: Record<string, [input: unknown[], messages: unknown[]]> = {
  'messages of every role, with and without a type': [
    [
      { role: 'system', content: 'Be kind.' },
      { type: 'message', role: 'developer', content: [{ type: 'input_text', text: 'Be brief.' }] },
      { type: 'message', role: 'user', content: 'Hi' },
      { role: 'assistant', content: 'Hello!' },
      said('How', ' are you?'),
      { role: 'user', content: [{ type: 'input_text', text: 'Fine' }] },
      {
        role: 'system',
        content: [
          { type: 'input_text', text: 'a' },
          { type: 'input_text', text: 'b' },
        ],
      },
    ],
    [
      { role: 'system', content: 'Be kind.' },
      { role: 'system', content: 'Be brief.' },
      user('Hi'),
      assistant('Hello!\n\nHow are you?'),
      user('Fine'),
      {
        role: 'system',
        content: [
          { type: 'text', text: 'a' },
          { type: 'text', text: 'b' },
        ],
      },
    ],
  ],
  'images, audio, files and prompt cache breakpoints': [
    [
      user([
        { type: 'input_text', text: 'Look', prompt_cache_breakpoint: { type: 'ephemeral' } },
        { type: 'input_image', image_url: 'data:image/png;base64,iVBO', detail: 'low', file_id: null },
        { type: 'input_image', image_url: 'https://example.com/a.png' },
        { type: 'input_audio', input_audio: { data: 'UklG', format: 'wav' } },
        { type: 'input_file', filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBE', file_url: null },
      ]),
      user([{ type: 'input_text', text: 'One', prompt_cache_breakpoint: { type: 'ephemeral' } }]),
    ],
    [
      user([
        { type: 'text', text: 'Look', prompt_cache_breakpoint: { type: 'ephemeral' } },
        { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBO', detail: 'low' } },
        { type: 'image_url', image_url: { url: 'https://example.com/a.png' } },
        { type: 'input_audio', input_audio: { data: 'UklG', format: 'wav' } },
        { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBE' } },
      ]),
      user([{ type: 'text', text: 'One', prompt_cache_breakpoint: { type: 'ephemeral' } }]),
    ],
  ],
  'a refusal, as assistant text': [
    [user('Do evil.'), { ...said(), content: [{ type: 'refusal', refusal: 'I cannot.' }] }],
    [user('Do evil.'), assistant('I cannot.')],
  ],
  'reasoning, text and tool calls of one turn, as one message': [
    [
      user('Weather?'),
      reasoning({ content: [{ type: 'reasoning_text', text: 'Two cities.' }], summary: summary('not this') }),
      said('Let me look.'),
      call('call_1'),
      call('call_2', 'get_time'),
      output('call_1', 'Sunny'),
      output('call_2', 'Noon'),
      reasoning({ summary: summary('Sunny.', 'Noon.'), encrypted_content: 'gAAA' }),
      said('It is sunny.'),
      user('Thanks'),
    ],
    [
      user('Weather?'),
      assistant('Let me look.', {
        reasoning_content: 'Two cities.',
        tool_calls: [toolCall('call_1'), toolCall('call_2', 'get_time')],
      }),
      tool('call_1', 'Sunny'),
      tool('call_2', 'Noon'),
      assistant('It is sunny.', { reasoning_content: 'Sunny.\n\nNoon.' }),
      user('Thanks'),
    ],
  ],
  'consecutive tool calls, each in a message of its own': [
    [call('call_1'), output('call_1', 'Sunny'), call('call_2'), output('call_2', [])],
    [
      assistant(null, { tool_calls: [toolCall('call_1')] }),
      tool('call_1', 'Sunny'),
      assistant(null, { tool_calls: [toolCall('call_2')] }),
      tool('call_2', ''),
    ],
  ],
  'encrypted reasoning, which is omitted': [
    [user('Hi'), reasoning({ encrypted_content: 'gAAA' }), user('Well?')],
    [user('Hi'), user('Well?')],
  ],
  'reasoning without a following message': [
    [user('Hi'), reasoning({ content: [{ type: 'reasoning_text', text: 'Hm' }] })],
    [user('Hi'), assistant('', { reasoning_content: 'Hm' })],
  ],
  'calls of custom and namespaced tools, as functions': [
    [
      { type: 'custom_tool_call', id: 'ctc_1', call_id: 'call_1', name: 'exec', input: 'print("hi")\n' },
      call('call_2', 'create_event', { namespace: 'calendar' }),
      { type: 'custom_tool_call', call_id: 'call_3', name: 'draw', namespace: 'paint', input: '' },
      { type: 'custom_tool_call_output', call_id: 'call_1', output: [{ type: 'input_text', text: 'hi' }] },
      output('call_2', [
        { type: 'input_text', text: 'Done' },
        { type: 'input_text', text: 'Well' },
      ]),
      { type: 'custom_tool_call_output', call_id: 'call_3', output: 'ok' },
    ],
    [
      assistant(null, {
        tool_calls: [
          toolCall('call_1', 'exec', '{"input":"print(\\"hi\\")\\n"}'),
          toolCall('call_2', 'calendar__create_event'),
          toolCall('call_3', 'paint__draw', '{"input":""}'),
        ],
      }),
      tool('call_1', 'hi'),
      tool('call_2', 'Done\nWell'),
      tool('call_3', 'ok'),
    ],
  ],
  'images and files of tool outputs, after all outputs of the turn': [
    [
      call('call_1'),
      call('call_2'),
      output('call_1', [
        { type: 'input_text', text: 'A chart:' },
        { type: 'input_image', image_url: 'https://example.com/chart.png', detail: 'auto' },
      ]),
      output('call_2', [{ type: 'input_file', filename: 'a.txt', file_data: 'YQ==' }]),
      said('I see.'),
    ],
    [
      assistant(null, { tool_calls: [toolCall('call_1'), toolCall('call_2')] }),
      tool('call_1', 'A chart:'),
      tool('call_2', 'What this call has put out is in a message below.'),
      user([
        { type: 'text', text: 'The tool call call_1 has put this out:' },
        { type: 'image_url', image_url: { url: 'https://example.com/chart.png', detail: 'auto' } },
        { type: 'text', text: 'The tool call call_2 has put this out:' },
        { type: 'file', file: { filename: 'a.txt', file_data: 'YQ==' } },
      ]),
      assistant('I see.'),
    ],
  ],
  'a question that its client repeats between calls and their outputs, which goes before the calls': [
    [user('Łódź?'), call('call_1'), call('call_2'), user('Łódź?'), output('call_1', 'Rain'), output('call_2', '3°')],
    [
      user('Łódź?'),
      user('Łódź?'),
      assistant(null, { tool_calls: [toolCall('call_1'), toolCall('call_2')] }),
      tool('call_1', 'Rain'),
      tool('call_2', '3°'),
    ],
  ],
  'messages between the outputs of a turn, which go behind the last one': [
    [
      call('call_1'),
      call('call_2'),
      output('call_1', 'Rain'),
      user('Its chart'),
      output('call_2', '3°'),
      said('I see.'),
      call('call_3'),
      output('call_3', 'Snow'),
    ],
    [
      assistant(null, { tool_calls: [toolCall('call_1'), toolCall('call_2')] }),
      tool('call_1', 'Rain'),
      tool('call_2', '3°'),
      user('Its chart'),
      assistant('I see.', { tool_calls: [toolCall('call_3')] }),
      tool('call_3', 'Snow'),
    ],
  ],
  'an output that comes after a later turn of the model, which goes behind its own turn': [
    [call('call_1'), user('And?'), said('I wait.'), output('call_1', 'Rain')],
    [assistant(null, { tool_calls: [toolCall('call_1')] }), tool('call_1', 'Rain'), user('And?'), assistant('I wait.')],
  ],
  'hosted tool calls, which are omitted': [
    [
      user('News?'),
      { type: 'web_search_call', id: 'ws_1', status: 'completed', action: { type: 'search', query: 'news' } },
      { type: 'file_search_call', id: 'fs_1', status: 'completed', queries: [] },
      { type: 'code_interpreter_call', id: 'ci_1', status: 'completed' },
      { type: 'image_generation_call', id: 'ig_1', status: 'completed', result: 'iVBO' },
      { type: 'mcp_list_tools', id: 'mcpl_1', server_label: 'a', tools: [] },
      { type: 'mcp_call', id: 'mcp_1', server_label: 'a', name: 'b', arguments: '{}' },
      said('None.'),
    ],
    [user('News?'), assistant('None.')],
  ],
};

describe('the chat translation of a response request', () => {
  for (const [name, [input, messages]] of Object.entries(conversations)) {
    it(`a response request over a chat has messages for ${name}`, () => {
      assert.deepEqual(messagesOf(...input), messages);
    });
  }

  it('a response request over a chat starts with the instructions as a system message', () => {
    const messages = [{ role: 'system', content: 'Be kind.' }, user('Hi')];
    assert.deepEqual(translate({ instructions: 'Be kind.' }), { messages });
    for (const none of [null, '']) assert.deepEqual(translate({ instructions: none }), { messages: [user('Hi')] });
  });

  it('a response request over a chat rejects what a chat cannot hold with a 400 that names its path', () => {
    const part = (fields: Fields, role = 'user') => ({ role, content: [{ type: 'input_text', text: 'x' }, fields] });
    const image = { type: 'input_image', image_url: 'https://example.com/a.png' };
    const cases: [item: Fields, param: string][] = [
      [part({ type: 'input_image', file_id: 'file-1' }), 'input[1].content[1].file_id'],
      [part({ type: 'input_image', detail: 'auto' }), 'input[1].content[1].image_url'],
      [part({ type: 'input_file', file_id: 'file-1' }), 'input[1].content[1].file_id'],
      [part({ type: 'input_file', file_url: 'https://example.com/a.pdf' }), 'input[1].content[1].file_url'],
      [part({ type: 'input_file', filename: 'a.pdf' }), 'input[1].content[1].file_data'],
      [part({ type: 'computer_screenshot' }), 'input[1].content[1]'],
      [part(image, 'system'), 'input[1].content[1]'],
      [part(image, 'assistant'), 'input[1].content[1]'],
      [output('call_1', [{ type: 'input_image', file_id: 'file-1' }]), 'input[1].output[0].file_id'],
      [{ type: 'computer_call_output', call_id: 'call_1', output: {} }, 'input[1]'],
      [{ type: 'mcp_approval_response', approval_request_id: 'mcpr_1', approve: true }, 'input[1]'],
      [{ type: 'local_shell_call_output', id: 'ls_1', output: '' }, 'input[1]'],
      [{ type: 'compaction', encrypted_content: 'gAAA' }, 'input[1]'],
      [{ type: 'something_new' }, 'input[1]'],
    ];
    for (const [item, param] of cases) {
      assert.throws(
        () => translate({}, [user('Hi'), item]),
        (error) => error instanceof ApiError && error.status === 400 && error.param === param,
        param,
      );
    }
    assert.throws(() => translate({ prompt: { id: 'pmpt_1' } }), { code: 'invalid_request_error', param: 'prompt' });
  });

  const messages = [user('Hi')];
  const schema = { type: 'object', properties: {} };

  /** Fields of a response and those of a chat that they become. */
  const fields: Record<string, [fields: Fields, chat: Fields]> = {
    'shared parameters, and unknown ones': [
      {
        ...{
          temperature: 0.5,
          top_p: 0.9,
          metadata: { a: 'b' },
          service_tier: 'flex',
          user: 'ann',
          something_new: [1],
        },
        ...{ safety_identifier: 's', prompt_cache_key: 'k', prompt_cache_retention: '24h' },
      },
      {
        ...{
          temperature: 0.5,
          top_p: 0.9,
          metadata: { a: 'b' },
          service_tier: 'flex',
          user: 'ann',
          something_new: [1],
        },
        ...{ safety_identifier: 's', prompt_cache_key: 'k', prompt_cache_retention: '24h' },
      },
    ],
    'max_output_tokens as max_completion_tokens': [{ max_output_tokens: 50 }, { max_completion_tokens: 50 }],
    'the reasoning effort and verbosity': [
      { reasoning: { effort: 'high', summary: 'auto' }, text: { verbosity: 'low' } },
      { reasoning_effort: 'high', verbosity: 'low' },
    ],
    'log probabilities when they are included': [
      { include: ['message.output_text.logprobs'], top_logprobs: 3 },
      { logprobs: true, top_logprobs: 3 },
    ],
    'no log probabilities when they are not included': [
      { include: ['reasoning.encrypted_content'], top_logprobs: 3 },
      {},
    ],
    'a schema for the answer': [
      { text: { format: { type: 'json_schema', name: 'a', schema, strict: true, description: 'An a.' } } },
      {
        response_format: {
          type: 'json_schema',
          json_schema: { name: 'a', schema, strict: true, description: 'An a.' },
        },
      },
    ],
    'a schema without null fields': [
      { text: { format: { type: 'json_schema', name: 'a', schema, strict: null, description: null } } },
      { response_format: { type: 'json_schema', json_schema: { name: 'a', schema } } },
    ],
    'the old JSON mode': [{ text: { format: { type: 'json_object' } } }, { response_format: { type: 'json_object' } }],
    'no response_format for plain text': [{ text: { format: { type: 'text' } } }, {}],
    'no null fields': [
      {
        ...{ temperature: null, max_output_tokens: null, text: null, reasoning: { effort: null }, metadata: null },
        ...{ tools: null, tool_choice: null, parallel_tool_calls: null, include: null, top_logprobs: null },
      },
      {},
    ],
    'no fields of the Responses API alone': [
      {
        ...{ include: [], truncation: 'auto', max_tool_calls: 3, stream_options: { include_obfuscation: false } },
        ...{ client_metadata: { a: 'b' }, context_management: [], prompt: null },
      },
      {},
    ],
  };
  for (const [name, [given, chat]] of Object.entries(fields)) {
    it(`a response request over a chat has ${name}`, () => {
      assert.deepEqual(translate(given), { messages, ...chat });
    });
  }
});
