import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type RunningSandbox, startSandbox } from '../../sandbox/server.ts';

let sandbox: RunningSandbox;
before(async () => {
  sandbox = await startSandbox();
});
after(() => sandbox.close());

interface WireFailure {
  error: { message: unknown; type: unknown; param: unknown; code: unknown };
}

async function post(body: unknown) {
  const response = await fetch(`${sandbox.url}/v1/responses`, {
    method: 'POST',
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  return { status: response.status, body: (await response.json()) as WireFailure };
}

const good = { model: 'sandbox-responses', input: 'hi' };
const user = { role: 'user', content: 'hi' };
const tool = { type: 'function', name: 'f', parameters: null, strict: false };
const call = { type: 'function_call', call_id: 'call_1', name: 'f', arguments: '{}' };
const output = { type: 'function_call_output', call_id: 'call_1', output: 'x' };

function withInput(...items: unknown[]) {
  return { ...good, input: items };
}

function withContent(...parts: unknown[]) {
  return withInput({ role: 'user', content: parts });
}

function withTools(...tools: unknown[]) {
  return { ...good, tools };
}

async function refuses(cases: readonly [param: string | null, body: unknown][]): Promise<void> {
  for (const [param, sent] of cases) {
    const { status, body } = await post(sent);
    const shown = JSON.stringify([sent, body]);
    assert.equal(status, 400, shown);
    assert.equal(body.error.param, param, shown);
    assert.equal(body.error.type, 'invalid_request_error', shown);
    assert.ok(typeof body.error.message === 'string' && body.error.message !== '', shown);
  }
}

describe('sandbox POST /v1/responses with bad input', () => {
  it('sandbox POST /v1/responses returns 400 naming the field at fault', () =>
    refuses([
      [null, '{'],
      [null, '[]'],
      ['model', { input: 'hi' }],
      ['model', { ...good, model: 5 }],
      ['colour', { ...good, colour: 'red' }],
      ['messages', { ...good, messages: [user] }],
      ['stream', { ...good, stream: 'yes' }],
      ['stream_options', { ...good, stream_options: { include_obfuscation: false } }],
      ['stream_options.include_obfuscation', { ...good, stream: true, stream_options: { include_obfuscation: 1 } }],
      ['instructions', { ...good, instructions: 1 }],
      ['max_output_tokens', { ...good, max_output_tokens: 15 }],
      ['max_output_tokens', { ...good, max_output_tokens: 16.5 }],
      ['max_tool_calls', { ...good, max_tool_calls: 0 }],
      ['temperature', { ...good, temperature: 2.1 }],
      ['top_p', { ...good, top_p: -0.1 }],
      ['top_logprobs', { ...good, top_logprobs: 21 }],
      ['include', { ...good, include: ['everything'] }],
      ['include', { ...good, include: 'reasoning.encrypted_content' }],
      ['truncation', { ...good, truncation: 'middle' }],
      ['service_tier', { ...good, service_tier: 'slow' }],
      ['reasoning', { ...good, reasoning: 'high' }],
      ['reasoning.effort', { ...good, reasoning: { effort: 'huge' } }],
      ['reasoning.summary', { ...good, reasoning: { summary: 'yes' } }],
      ['metadata', { ...good, metadata: 'x' }],
      ['metadata.a', { ...good, metadata: { a: 1 } }],
      ['metadata', { ...good, metadata: Object.fromEntries(Array.from({ length: 17 }, (_, at) => [`k${at}`, 'v'])) }],
      ['user', { ...good, user: 1 }],
      ['safety_identifier', { ...good, safety_identifier: 'x'.repeat(65) }],
      ['prompt_cache_key', { ...good, prompt_cache_key: 1 }],
      ['client_metadata', { ...good, client_metadata: 1 }],
      ['parallel_tool_calls', { ...good, parallel_tool_calls: 1 }],
      ['text', { ...good, text: 'json' }],
      ['text.verbosity', { ...good, text: { verbosity: 'endless' } }],
      ['text.format', { ...good, text: { format: 'json' } }],
      ['text.format.type', { ...good, text: { format: {} } }],
      ['text.format.type', { ...good, text: { format: { type: 'xml' } } }],
      ['text.format.name', { ...good, text: { format: { type: 'json_schema', schema: {} } } }],
      ['text.format.schema', { ...good, text: { format: { type: 'json_schema', name: 'n' } } }],
      ['text.format.schema', { ...good, text: { format: { type: 'json_schema', name: 'n', schema: { type: 'x' } } } }],
      ['sandbox.fault.kind', { ...good, sandbox: { fault: { kind: 'no_done' } } }],
      ['sandbox.tokens_per_second', { ...good, sandbox: { tokens_per_second: 0 } }],
      ['input', { ...good, input: 'WORDS:9999999' }],
    ]));

  it('sandbox POST /v1/responses returns 400 for everything that needs stored responses', async () => {
    await refuses([
      ['store', { ...good, store: true }],
      ['background', { ...good, background: true }],
      ['previous_response_id', { ...good, previous_response_id: 'resp_1' }],
      ['conversation', { ...good, conversation: 'conv_1' }],
      ['input', withInput({ type: 'item_reference', id: 'msg_1' })],
      ['input', withInput({ id: 'rs_1' })],
      ['input', withInput({ type: 'reasoning', id: 'rs_1', summary: [] }, user)],
      ['input', withInput({ type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: null }, user)],
    ]);
    const { body } = await post({ ...good, previous_response_id: 'resp_1' });
    assert.equal(body.error.code, 'previous_response_not_found');
    const accepted = { store: false, background: false, previous_response_id: null, client_metadata: { a: 'b' } };
    assert.equal((await post({ ...good, ...accepted })).status, 200);
    const thought = { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'so' }] };
    assert.equal((await post(withInput(thought, user))).status, 200);
  });

  it('sandbox POST /v1/responses returns 400 naming the path in the input', () =>
    refuses([
      ['input', { model: good.model }],
      ['input', { ...good, input: 5 }],
      ['input', { ...good, input: [] }],
      ['input[0]', withInput('hi')],
      ['input[1].type', withInput(user, { type: 'dream' })],
      ['input[0].id', withInput({})],
      ['input[0].role', withInput({ role: 'robot', content: 'hi' })],
      ['input[0].role', withInput({ type: 'message', content: 'hi' })],
      ['input[0].content', withInput({ role: 'user' })],
      ['input[0].content[0]', withContent('hi')],
      ['input[0].content[0]', withContent({ type: 'output_text', text: 'hi' })],
      ['input[0].content[0]', withInput({ role: 'assistant', content: [{ type: 'input_text', text: 'hi' }] })],
      ['input[0].content[0].text', withContent({ type: 'input_text' })],
      ['input[0].content[1].image_url', withContent({ type: 'input_text', text: '' }, { type: 'input_image' })],
      ['input[0].content[0].file_id', withContent({ type: 'input_image', file_id: 'file-1' })],
      ['input[0].content[0].file_id', withContent({ type: 'input_file', file_id: 'file-1' })],
      ['input[0].content[0]', withContent({ type: 'input_file' })],
      ['input[1].id', withInput(user, { type: 'reasoning', summary: [] })],
      ['input[1].summary', withInput(user, { type: 'reasoning', id: 'rs_1' })],
      ['input[1].name', withInput(user, { ...call, name: undefined })],
      ['input[1].arguments', withInput(user, { ...call, arguments: {} })],
      ['input[1].call_id', withInput(user, { ...call, call_id: undefined })],
      ['input[1].call_id', withInput(user, { ...call, call_id: 'c'.repeat(65) })],
      ['input[2].output', withInput(user, call, { ...output, output: undefined })],
      ['input[2].output[0]', withInput(user, call, { ...output, output: [{ type: 'output_text', text: 'x' }] })],
      ['input[1].input', withInput(user, { type: 'custom_tool_call', call_id: 'call_1', name: 'f' })],
    ]));

  it('sandbox POST /v1/responses checks the prefix of every item id', () =>
    refuses([
      ['input[0].id', withInput({ type: 'message', id: 'rs_1', role: 'assistant', content: 'hi' }, user)],
      ['input[0].id', withInput({ type: 'message', id: `msg_${'1'.repeat(61)}`, role: 'assistant', content: 'hi' })],
      ['input[1].id', withInput(user, { ...call, id: 'call_1' }, output)],
      ['input[1].id', withInput(user, { type: 'reasoning', id: 'msg_1', summary: [] })],
      ['input[1].id', withInput(user, { type: 'custom_tool_call', id: 'fc_1', call_id: 'c', name: 'f', input: '' })],
      ['input[1].id', withInput(user, { type: 'web_search_call', id: 'x_1', status: 'completed' })],
    ]));

  it('sandbox POST /v1/responses requires an output for every call and a call for every output', async () => {
    const custom = { type: 'custom_tool_call', call_id: 'call_1', name: 'f', input: '' };
    await refuses([
      ['input', withInput(user, call)],
      ['input', withInput(user, custom)],
      ['input', withInput(user, output)],
      ['input', withInput(user, output, call)],
      ['input', withInput(user, custom, output)],
      ['input', withInput(user, call, { ...output, call_id: 'call_2' })],
    ]);
    const { body } = await post(withInput(user, call));
    assert.equal(body.error.message, 'No tool output found for function call call_1.');
    assert.equal((await post(withInput(user, call, output))).status, 200);
  });

  it('sandbox POST /v1/responses returns 400 naming the path in the tools', () =>
    refuses([
      ['tools', { ...good, tools: {} }],
      ['tools[0]', withTools('f')],
      ['tools[0].type', withTools({})],
      ['tools[1].type', withTools(tool, { type: 'gadget' })],
      ['tools[0].name', withTools({ type: 'function' })],
      ['tools[0].name', withTools({ ...tool, name: 'two words' })],
      ['tools[0].parameters', withTools({ ...tool, parameters: 'none' })],
      ['tools[0].strict', withTools({ ...tool, strict: 'very' })],
      ['tools[0].name', withTools({ type: 'function', function: { name: 'f' } })],
      ['tools[0].format', withTools({ type: 'custom', name: 'f', format: 'text' })],
      ['tools[0].format.type', withTools({ type: 'custom', name: 'f', format: { type: 'xml' } })],
      ['tools[0].format.syntax', withTools({ type: 'custom', name: 'f', format: { type: 'grammar', syntax: 'abnf' } })],
      [
        'tools[0].format.definition',
        withTools({ type: 'custom', name: 'f', format: { type: 'grammar', syntax: 'lark' } }),
      ],
      ['tools[0].vector_store_ids', withTools({ type: 'file_search' })],
      ['tool_choice', { ...good, tool_choice: 'required' }],
      ['tool_choice', { ...withTools(tool), tool_choice: 'sometimes' }],
      ['tool_choice', { ...withTools(tool), tool_choice: { type: 'function', name: 'g' } }],
      ['tool_choice', { ...withTools(tool), tool_choice: { type: 'custom', name: 'f' } }],
      ['tool_choice.name', { ...withTools(tool), tool_choice: { type: 'function' } }],
      ['tool_choice', { ...withTools(tool), tool_choice: { type: 'web_search_preview' } }],
      ['tool_choice', { ...withTools({ type: 'local_shell' }), tool_choice: { type: 'local_shell' } }],
      ['tool_choice.mode', { ...withTools(tool), tool_choice: { type: 'allowed_tools', mode: 'none', tools: [] } }],
      ['tool_choice.tools', { ...withTools(tool), tool_choice: { type: 'allowed_tools', mode: 'auto' } }],
      [
        'tool_choice.tools[0]',
        {
          ...withTools(tool),
          tool_choice: { type: 'allowed_tools', mode: 'auto', tools: [{ type: 'function', name: 'g' }] },
        },
      ],
    ]));

  it('sandbox POST /v1/responses returns 404 for unknown models, and for chat models without responses', async () => {
    for (const model of ['none', 'sandbox-embedding']) {
      const { status, body } = await post({ ...good, model });
      assert.deepEqual([status, body.error.param, body.error.code], [404, 'model', 'model_not_found']);
    }
    for (const model of ['sandbox-chat', 'sandbox-reasoning']) {
      const { status, body } = await post({ ...good, model });
      assert.deepEqual([status, body.error.param, body.error.code], [404, 'model', null]);
      assert.match(String(body.error.message), /not in v1\/responses/);
    }
  });

  it('sandbox POST /v1/chat/completions returns 400 for the fault failed_event', async () => {
    const response = await fetch(`${sandbox.url}/v1/chat/completions`, {
      method: 'POST',
      body: JSON.stringify({
        model: 'sandbox-responses',
        messages: [user],
        sandbox: { fault: { kind: 'failed_event' } },
      }),
    });
    assert.equal(response.status, 400);
  });
});
