import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parseMessageCount, parseMessages } from '../../../../api/endpoints/messages/parse-messages.ts';
import { textOf } from '../../../../api/pipeline/request-text.ts';
import { ApiError } from '../../../../shared/errors.ts';

const bodyOf = (more: object) =>
  Buffer.from(JSON.stringify({ model: 'm', max_tokens: 9, messages: [{ role: 'user', content: 'Hi' }], ...more }));

/** What is refused of a request: the parameter, and what the caller reads. */
function refusalOf(parse: (body: Buffer) => unknown, more: object): Pick<ApiError, 'param' | 'message'> {
  try {
    parse(bodyOf(more));
  } catch (error) {
    assert.ok(error instanceof ApiError, String(error));
    return error;
  }
  return assert.fail(`it is taken: ${JSON.stringify(more)}`);
}

describe('fields of a chat in a message', () => {
  it("POST /v1/messages and its count refuse a tool in OpenAI's form, and say which fields a tool has here", () => {
    const openAis = { type: 'function', function: { name: 'look', parameters: { type: 'object' } } };
    const own = { name: 'look', input_schema: { type: 'object' } };
    for (const parse of [parseMessages, parseMessageCount]) {
      const { param, message } = refusalOf(parse, { tools: [own, openAis] });
      assert.equal(param, 'tools[1].type');
      assert.match(message, /'name' and 'input_schema'/);
    }
    for (const type of ['function', 'web_search', 'x_2025', '_20250305', '']) {
      assert.equal(refusalOf(parseMessages, { tools: [{ type, name: 'look' }] }).param, 'tools[0].type', type);
    }
    const definition = { type: 'tool_definition', definition: openAis };
    const turn = { role: 'system', content: [{ type: 'tool_addition', tool: definition }] };
    const added = refusalOf(parseMessages, { messages: [{ role: 'user', content: 'Hi' }, turn] });
    assert.equal(added.param, 'messages[1].content[0].tool.definition.type');
  });

  it('POST /v1/messages refuses chat fields that a message has in another form, and says which', () => {
    const format = { type: 'json_object' };
    for (const [field, value, use] of [
      ['stop', ['x'], 'stop_sequences'],
      ['max_completion_tokens', 5, 'max_tokens'],
      ['response_format', format, 'output_config.format'],
      ['reasoning_effort', 'low', 'output_config.effort'],
      ['parallel_tool_calls', false, 'tool_choice'],
    ] as const) {
      const { param, message } = refusalOf(parseMessages, { [field]: value });
      assert.deepEqual([param, message], [field, `'${field}' is not a parameter of this endpoint: use '${use}'.`]);
      // Null counts as left out.
      assert.equal(parseMessages(bodyOf({ [field]: null })).model, 'm');
    }
    const { message } = refusalOf(parseMessages, { n: 2 });
    assert.equal(message, "'n' is not a parameter of this endpoint.");
    const passed = { seed: 7, presence_penalty: 0.5, vendors_own: { a: 1 } };
    const chat = JSON.parse(textOf(parseMessages(bodyOf(passed)).request));
    const { seed, presence_penalty, vendors_own } = chat;
    assert.deepEqual({ seed, presence_penalty, vendors_own }, passed);
  });

  it("POST /v1/messages takes all types of Anthropic's tools, with a date and without, and names them as ignored", () => {
    const types = [
      ...['bash_20250124', 'text_editor_20250728', 'computer_20251124', 'web_search_20250305', 'web_fetch_20250910'],
      ...['code_execution_20250825', 'memory_20250818', 'advisor_20260301', 'browser_toolset_20260801', 'mcp_toolset'],
      ...['tool_search_tool_bm25_20251119', 'tool_search_tool_regex', 'tool_search_tool_bm25'],
    ];
    const { ignored } = parseMessages(bodyOf({ tools: types.map((type) => ({ type, name: 'x' })) })).requirements;
    assert.deepEqual(
      ignored,
      types.map((type) => `tools.${type}`),
    );
  });
});
