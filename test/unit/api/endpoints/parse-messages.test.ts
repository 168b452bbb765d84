import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { checkMessages } from '../../../../api/endpoints/messages/messages.ts';
import { parseMessageCount, parseMessages } from '../../../../api/endpoints/messages/parse-messages.ts';
import { textOf } from '../../../../api/pipeline/request-text.ts';
import { chatRequest } from '../../../../shared/capabilities/chat.ts';
import { withoutHints } from '../../../../workers/execute/without-hints.ts';
import { madeUpModel } from '../../../support/routed-model.ts';

const parse = (more: object) =>
  parseMessages(
    Buffer.from(JSON.stringify({ model: 'm', max_tokens: 9, messages: [{ role: 'user', content: 'Hi' }], ...more })),
  );

/** The chat that a request becomes, which a chat's own schema has to accept. */
function chatOf(more: object): Record<string, unknown> {
  const chat = JSON.parse(textOf(parse(more).request));
  assert.ok(chatRequest.validate({ model: 'm', ...chat }), JSON.stringify(chat));
  return chat;
}
const turnsOf = (messages: readonly object[], more: object = {}): unknown => chatOf({ messages, ...more }).messages;

/** A model of a vendor that refuses what it does not know. */
const strict = (effort: boolean) => madeUpModel({ id: 'm', capability: 'chat', chat: { hints: false, effort } });

const cached = { cache_control: { type: 'ephemeral' } };
const call = { type: 'tool_use', id: 'toolu_1', name: 'look', input: { a: [1] } };
const asked = { role: 'assistant', content: [call] };
const askedChat = {
  role: 'assistant',
  content: null,
  tool_calls: [{ id: 'toolu_1', type: 'function', function: { name: 'look', arguments: '{"a":[1]}' } }],
};

describe('parseMessages', () => {
  it('parseMessages puts the system prompt first, makes a lone text a string, and keeps cache marks on their parts', () => {
    assert.deepEqual(turnsOf([{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }], { system: 'Be kind.' }), [
      { role: 'system', content: 'Be kind.' },
      { role: 'user', content: 'Hi' },
    ]);
    const system = [
      { type: 'text', text: 'a' },
      { type: 'text', text: 'b', ...cached },
    ];
    assert.deepEqual(turnsOf([{ role: 'user', content: [{ type: 'text', text: 'Hi', ...cached }] }], { system }), [
      { role: 'system', content: system },
      { role: 'user', content: [{ type: 'text', text: 'Hi', ...cached }] },
    ]);
  });

  it('parseMessages keeps system messages at their position in the conversation', () => {
    const turns = [
      { role: 'user', content: 'Hi' },
      { role: 'system', content: 'Be brief.' },
      { role: 'assistant', content: 'Yes' },
      { role: 'system', content: [{ type: 'text', text: 'x' }] },
    ];
    assert.deepEqual(turnsOf(turns), [...turns.slice(0, 3), { role: 'system', content: 'x' }]);
  });

  it('parseMessages leaves out system messages that only change the effort, and those that counted until the next user message', () => {
    const messages = [
      { role: 'user', content: 'Hi' },
      { role: 'system', content: 'Now.', clear_at: 'next_user_message' },
      { role: 'assistant', content: 'Ho' },
      { role: 'system', content: 'Always.', clear_at: 'never' },
      { role: 'user', content: 'Hm' },
      { role: 'system', content: 'Now again.', clear_at: 'next_user_message' },
      { role: 'system', content: [], output_config: { effort: 'low' } },
      { role: 'system', output_config: { effort: 'low' } },
    ];
    assert.deepEqual(turnsOf(messages), [
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: 'Ho' },
      { role: 'system', content: 'Always.' },
      { role: 'user', content: 'Hm' },
      { role: 'system', content: 'Now again.' },
    ]);
    assert.deepEqual(parse({ messages }).requirements.ignored, ['messages.output_config']);
  });

  it('parseMessages announces added and removed tools as text, and offers the tools that are defined there', () => {
    const tool = { name: 'added', input_schema: { type: 'object' } };
    const named = { type: 'tool_reference', name: 'look_up' };
    const changes = [
      { type: 'tool_addition', tool: named },
      { type: 'tool_addition', tool: { type: 'tool_definition', definition: tool } },
      { type: 'tool_removal', tool: named },
    ];
    const turn = { role: 'system', content: changes };
    const { messages, tools } = chatOf({
      tools: [{ name: 'look_up', input_schema: {} }],
      messages: [{ role: 'user', content: 'Hi' }, turn],
    });
    const names = (tools as { function: { name: string } }[]).map((offered) => offered.function.name);
    assert.deepEqual(names, ['look_up', 'added']);
    const text = (what: string) => ({ type: 'text', text: what });
    assert.deepEqual((messages as object[])[1], {
      role: 'system',
      content: [
        text('The tool look_up is available from here on.'),
        text('The tool added is available from here on.'),
        text('The tool look_up is no longer available: do not call it.'),
      ],
    });
  });

  it('parseMessages puts tool results before the rest of their message, and their images after them', () => {
    const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } };
    const content = [
      { type: 'text', text: 'And now?' },
      { type: 'tool_result', tool_use_id: 'toolu_1', content: [{ type: 'text', text: 'seen' }, image], ...cached },
    ];
    assert.deepEqual(turnsOf([{ role: 'user', content: 'Look' }, asked, { role: 'user', content }]), [
      { role: 'user', content: 'Look' },
      askedChat,
      { role: 'tool', tool_call_id: 'toolu_1', content: [{ type: 'text', text: 'seen', ...cached }] },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'From the result of the tool call toolu_1:' },
          { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
          { type: 'text', text: 'And now?' },
        ],
      },
    ]);
  });

  it('parseMessages passes tool errors, empty results and tool references on as text', () => {
    const said = (result: object): unknown => {
      const turn = { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', ...result }] };
      const turns = turnsOf([asked, turn]) as { role: string; content: unknown }[];
      assert.deepEqual(
        turns.map(({ role }) => role),
        ['assistant', 'tool'],
      );
      return turns[1]?.content;
    };
    assert.equal(said({ content: 'gone', is_error: true }), 'Error: gone');
    assert.equal(said({}), '');
    assert.equal(said({ content: [] }), '');
    assert.equal(said({ content: [{ type: 'tool_reference', tool_name: 'Look' }] }), 'The tool Look is available.');
  });

  it('parseMessages passes thinking of earlier messages on, both as text and as the original blocks', () => {
    const thoughts = [
      { type: 'thinking', thinking: 'Hm', signature: 'sig' },
      { type: 'redacted_thinking', data: 'xyz' },
    ];
    assert.deepEqual(turnsOf([{ role: 'assistant', content: [...thoughts, { type: 'text', text: 'Yes' }] }]), [
      { role: 'assistant', content: 'Yes', reasoning_content: 'Hm', thinking_blocks: thoughts },
    ]);
  });

  it("parseMessages translates tools to functions and leaves out Anthropic's own tools", () => {
    const tools = [
      { name: 'look', description: 'Looks.', input_schema: { type: 'object' }, strict: true, ...cached },
      { type: 'web_search_20250305', name: 'web_search' },
    ];
    const choice = { type: 'tool', name: 'look', disable_parallel_tool_use: true };
    const chat = chatOf({ tools, tool_choice: choice });
    const look = { name: 'look', description: 'Looks.', parameters: { type: 'object' }, strict: true };
    assert.deepEqual(chat.tools, [{ type: 'function', function: look, ...cached }]);
    assert.deepEqual(chat.tool_choice, { type: 'function', function: { name: 'look' } });
    assert.equal(chat.parallel_tool_calls, false);
    assert.deepEqual(parse({ tools }).requirements.ignored, ['tools.web_search_20250305']);
    const { tools: none, tool_choice: noChoice } = chatOf({ tools: [tools[1]], tool_choice: { type: 'auto' } });
    assert.deepEqual([none, noChoice], [undefined, undefined]);
  });

  it('parseMessages translates the parameters and passes on unknown ones', () => {
    const { messages: _, ...chat } = chatOf({
      ...{
        max_tokens: 100,
        temperature: 1,
        top_p: 0.5,
        top_k: 3,
        stop_sequences: ['a'],
        service_tier: 'standard_only',
      },
      ...{ metadata: { user_id: 'ann' }, unknown: { a: 1 }, thinking: { type: 'enabled', budget_tokens: 9000 } },
      ...{ output_config: { format: { type: 'json_schema', schema: { type: 'object' } } } },
    });
    assert.deepEqual(chat, {
      ...{ max_completion_tokens: 100, temperature: 1, top_p: 0.5, top_k: 3, stop: ['a'], service_tier: 'default' },
      ...{ user: 'ann', unknown: { a: 1 }, reasoning_effort: 'medium' },
      thinking: { type: 'enabled', budget_tokens: 9000 },
      response_format: {
        type: 'json_schema',
        json_schema: { name: 'output', schema: { type: 'object' }, strict: true },
      },
    });
    const long = chatOf({ metadata: { user_id: 'u'.repeat(65) } }).user;
    assert.match(String(long), /^[0-9a-f]{64}$/);
    assert.equal(chatOf({ metadata: { user_id: 'u'.repeat(65) } }).user, long);
  });

  it('parseMessages hides thinking that is disabled or omitted, and keeps the signatures of omitted thinking', () => {
    const shown = (thinking: object | null) => {
      const { hidesThinking, keepsSignatures } = parse({ thinking }).viewOptions;
      return [hidesThinking, keepsSignatures];
    };
    assert.deepEqual(shown(null), [false, false]);
    assert.deepEqual(shown({ type: 'adaptive', display: 'summarized' }), [false, false]);
    assert.deepEqual(shown({ type: 'adaptive', display: 'omitted' }), [true, true]);
    assert.deepEqual(shown({ type: 'enabled', budget_tokens: 2048, display: 'omitted' }), [true, true]);
    assert.deepEqual(shown({ type: 'disabled' }), [true, false]);
  });

  it('parseMessages lists the fields that a chat cannot express', () => {
    const named = (more: object) => {
      const { ignored, hints, foreign, effort } = parse(more).requirements;
      return { ignored, hints, foreign, effort };
    };
    const nothing = { ignored: [], hints: [], foreign: [], effort: [] };
    assert.deepEqual(named({}), nothing);
    assert.deepEqual(named({ context_management: {}, speed: 'fast' }), {
      ...nothing,
      ignored: ['context_management', 'speed'],
    });
    assert.deepEqual(named({ ...cached, top_k: 1 }), { ...nothing, hints: ['cache_control', 'top_k'] });
    assert.deepEqual(named({ thinking: { type: 'disabled' } }), {
      ...nothing,
      hints: ['thinking'],
      effort: ['thinking'],
    });
    assert.deepEqual(named({ output_config: { effort: 'low' } }), { ...nothing, effort: ['output_config.effort'] });
    assert.deepEqual(named({ thinking: { type: 'between_tools' }, output_config: { task_budget: { tokens: 9 } } }), {
      ...nothing,
      foreign: ['thinking', 'output_config'],
    });
    const document = {
      ...{
        type: 'document',
        source: { type: 'text', media_type: 'text/plain', data: 'x' },
        citations: { enabled: true },
      },
    };
    assert.deepEqual(named({ messages: [{ role: 'user', content: [document] }] }), {
      ...nothing,
      ignored: ['citations'],
    });
  });

  it('parseMessages detects inline images and documents as media, but not links', () => {
    const holds = (source: object, type = 'image'): boolean =>
      parse({ messages: [{ role: 'user', content: [{ type, source }] }] }).hasMedia;
    assert.equal(holds({ type: 'url', url: 'https://a.example/b.png' }), false);
    assert.equal(holds({ type: 'base64', media_type: 'image/png', data: 'AAAA' }), true);
    assert.equal(holds({ type: 'base64', media_type: 'application/pdf', data: 'AAAA' }, 'document'), true);
    assert.equal(parse({}).hasMedia, false);
  });

  it('parseMessageCount makes the same chat as parseMessages, without the fields that are no input', () => {
    const input = { model: 'm', messages: [{ role: 'user', content: 'Hi' }], system: 'Be kind.' };
    const counted = JSON.parse(textOf(parseMessageCount(Buffer.from(JSON.stringify(input))).request));
    const { max_completion_tokens: _, ...chat } = chatOf({ system: 'Be kind.' });
    assert.deepEqual(counted, chat);
  });
});

describe('withoutHints and checkMessages', () => {
  const request = parse({
    ...{ ...cached, top_k: 3, system: [{ type: 'text', text: 'a', ...cached }] },
    tools: [{ name: 'look', input_schema: { type: 'object', properties: { cache_control: {} } }, ...cached }],
    thinking: { type: 'disabled' },
    messages: [
      { role: 'user', content: [{ type: 'text', text: '"cache_control": "top_k":', ...cached }] },
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 'Hm', signature: 's' },
          { ...call, input: { cache_control: 1 }, ...cached },
        ],
      },
    ],
  }).request;

  it('withoutHints removes all hints for a strict vendor, and keeps text that only looks like one', () => {
    assert.deepEqual(JSON.parse(withoutHints(textOf(request), strict(true))), {
      max_completion_tokens: 9,
      tools: [
        {
          type: 'function',
          function: { name: 'look', parameters: { type: 'object', properties: { cache_control: {} } } },
        },
      ],
      messages: [
        { role: 'system', content: [{ type: 'text', text: 'a' }] },
        { role: 'user', content: [{ type: 'text', text: '"cache_control": "top_k":' }] },
        {
          role: 'assistant',
          content: null,
          tool_calls: [
            { id: 'toolu_1', type: 'function', function: { name: 'look', arguments: '{"cache_control":1}' } },
          ],
        },
      ],
    });
  });

  it('withoutHints keeps hints for a lenient vendor, and an effort only for models that reason', () => {
    const lenient = madeUpModel({ id: 'm', capability: 'chat' });
    const { thinking: _, ...expected } = JSON.parse(textOf(request));
    assert.deepEqual(JSON.parse(withoutHints(textOf(request), lenient)), expected);
    const effort = parse({ thinking: { type: 'enabled', budget_tokens: 1024 } }).request;
    assert.equal(JSON.parse(withoutHints(textOf(effort), strict(true))).reasoning_effort, 'low');
    assert.equal(JSON.parse(withoutHints(textOf(effort), strict(false))).reasoning_effort, undefined);
  });

  it("withoutHints keeps Anthropic's own fields for Anthropic alone", () => {
    const thinking = { type: 'enabled', budget_tokens: 5000, display: 'summarized' };
    const own = { thinking, output_config: { effort: 'max', task_budget: { type: 'tokens', total: 9 } } };
    const chat = parse(own).request;
    const anthropic = madeUpModel({ id: 'm', capability: 'chat', chat: { hints: true, effort: true } }, 'anthropic');
    assert.equal(withoutHints(textOf(chat), anthropic), chat);
    const { thinking: kept, output_config: output } = JSON.parse(textOf(chat));
    assert.deepEqual({ thinking: kept, output_config: output }, own);
    assert.deepEqual(checkMessages(parse(own), anthropic), []);
    for (const vendor of ['openai', 'groq', 'gemini', 'ollama']) {
      const row = madeUpModel({ id: 'm', capability: 'chat' }, vendor);
      assert.deepEqual(JSON.parse(withoutHints(textOf(chat), row)), {
        ...JSON.parse(textOf(parse({}).request)),
        reasoning_effort: 'xhigh',
      });
      assert.deepEqual(checkMessages(parse(own), row), ['output_config'], vendor);
    }
  });

  it('checkMessages refuses a linked document where nobody fetches it, by its path', () => {
    const document = { type: 'document', source: { type: 'url', url: 'https://example.com/a.pdf' }, title: 'a.pdf' };
    const asked = { role: 'assistant', content: [call] };
    const results = [{ type: 'tool_result', tool_use_id: 'toolu_1', content: [document] }];
    for (const [content, path] of [
      [[{ type: 'text', text: 'Hi' }, document], 'messages[1].content[1].source.type'],
      [results, 'messages[1].content[0].content[0].source.type'],
    ] as const) {
      const parsed = parse({ messages: [asked, { role: 'user', content }] });
      const file = { filename: 'a.pdf', file_data: 'https://example.com/a.pdf' };
      assert.deepEqual(JSON.parse(textOf(parsed.request)).messages.at(-1).content.at(-1), { type: 'file', file });
      assert.deepEqual([parsed.hasMedia, parsed.extent?.documents], [false, 1]);
      for (const vendor of ['anthropic', 'bedrock', 'gemini']) {
        assert.deepEqual(checkMessages(parsed, madeUpModel({ id: 'm', capability: 'chat' }, vendor)), []);
      }
      const refuses = () => checkMessages(parsed, madeUpModel({ id: 'm', capability: 'chat' }, 'groq'));
      assert.throws(refuses, { code: 'invalid_request_error', param: path });
    }
  });

  it("checkMessages refuses a limit above a model's maximum at Anthropic alone: for others it is lowered", () => {
    const most = { maxOutputTokens: 8192 };
    const parsed = parse({ max_tokens: 8193 });
    const at = (vendor: string) => ({ ...madeUpModel({ id: 'm', capability: 'chat' }, vendor), ...most });
    assert.throws(() => checkMessages(parsed, at('anthropic')), { status: 400, param: 'max_tokens' });
    assert.deepEqual(checkMessages(parse({ max_tokens: 8192 }), at('anthropic')), []);
    for (const vendor of ['openai', 'bedrock', 'gemini', 'deepseek']) {
      assert.deepEqual(checkMessages(parsed, at(vendor)), []);
    }
  });

  it('checkMessages returns the names of the fields that are left out', () => {
    const parsed = parse({
      ...cached,
      top_k: 3,
      speed: 'fast',
      thinking: { type: 'enabled', budget_tokens: 2048 },
    });
    const row = madeUpModel({ id: 'm', capability: 'chat' });
    assert.deepEqual(checkMessages(parsed, row), ['speed']);
    assert.deepEqual(checkMessages(parsed, strict(true)), ['speed', 'cache_control', 'top_k']);
    assert.deepEqual(checkMessages(parsed, strict(false)), ['speed', 'cache_control', 'top_k', 'thinking']);
  });
});
