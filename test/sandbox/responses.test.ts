import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type OpenAI from 'openai';
import { type RunningSandbox, startSandbox } from '../../sandbox/server.ts';
import {
  finalResponse,
  functionCalls,
  onlyEvents,
  type ResponseParameters,
  ResponsesClient,
  responsesModel,
  weatherTool,
} from '../support/responses-client.ts';

let sandbox: RunningSandbox;
let client: ResponsesClient;
before(async () => {
  sandbox = await startSandbox();
  client = new ResponsesClient(sandbox.url);
});
after(() => sandbox.close());

/** Without what is another in every answer: ids and times. */
function comparable(response: OpenAI.Responses.Response) {
  const digits = response.id.slice('resp_'.length);
  const text = JSON.stringify({ ...response, id: '', created_at: 0, completed_at: 0, output_text: undefined });
  return JSON.parse(
    text.replaceAll(digits, '…').replace(/"encrypted_content":"[^"]+"/g, '"encrypted_content":"…"'),
  ) as unknown;
}

describe('sandbox POST /v1/responses, text', () => {
  it('sandbox POST /v1/responses answers a string and a list of messages alike', async () => {
    const response = await client.create({ input: 'Reply with exactly: žluťoučký 😀' });
    assert.equal(response.output_text, 'žluťoučký 😀');
    assert.deepEqual([response.object, response.status], ['response', 'completed']);
    assert.match(response.id, /^resp_[0-9a-f]+$/);
    const [message] = response.output;
    assert.ok(message?.type === 'message');
    assert.match(message.id, /^msg_[0-9a-f]+$/);
    assert.deepEqual([message.role, message.status], ['assistant', 'completed']);
    const listed = await client.create({
      input: [
        { role: 'user', content: 'Reply with exactly: no' },
        { role: 'assistant', content: 'no' },
        { role: 'user', content: [{ type: 'input_text', text: 'Reply with exactly: žluťoučký 😀' }] },
      ],
    });
    assert.equal(listed.output_text, response.output_text);
  });

  it('sandbox POST /v1/responses echoes the request in the response, with the defaults filled in', async () => {
    const plain = await client.create({ input: 'hi' });
    const { temperature, top_p, truncation, tools, tool_choice, text, reasoning, metadata } = plain;
    assert.deepEqual(
      { temperature, top_p, truncation, tools, tool_choice, text, reasoning, metadata },
      {
        temperature: 1,
        top_p: 1,
        truncation: 'disabled',
        tools: [],
        tool_choice: 'auto',
        text: { format: { type: 'text' }, verbosity: 'medium' },
        reasoning: { effort: null, summary: null },
        metadata: {},
      },
    );
    const asked = {
      instructions: 'Be brief.',
      temperature: 0.5,
      top_p: 0.25,
      truncation: 'auto',
      max_output_tokens: 90,
      max_tool_calls: 3,
      metadata: { purpose: 'test' },
      prompt_cache_key: 'key',
      safety_identifier: 'somebody',
      parallel_tool_calls: false,
      text: { format: { type: 'text' }, verbosity: 'low' },
    } as const;
    const response = await client.create({ input: 'hi', ...asked, store: false, service_tier: 'auto' });
    const repeated = Object.keys(asked).map((name) => [name, response[name as keyof typeof response]]);
    assert.deepEqual(Object.fromEntries(repeated), asked);
    assert.equal(response.service_tier, 'default');
    assert.ok(Number(response.usage?.input_tokens) > Number(plain.usage?.input_tokens));
  });

  it('sandbox POST /v1/responses streams numbered events in order, and ends with the response of the held answer', async () => {
    const events = await client.streamed({ input: 'Count from 1 to 3' });
    assert.deepEqual(
      events.map(({ type }) => type.replace('response.', '')),
      [
        ...['created', 'in_progress', 'output_item.added', 'content_part.added'],
        ...['output_text.delta', 'output_text.delta', 'output_text.delta'],
        ...['output_text.done', 'content_part.done', 'output_item.done', 'completed'],
      ],
    );
    assert.deepEqual(
      events.map(({ sequence_number }) => sequence_number),
      events.map((_, index) => index),
    );
    const deltas = onlyEvents(events, 'response.output_text.delta').map(({ delta }) => delta);
    assert.deepEqual(deltas, ['1', ' 2', ' 3']);
    const [done] = onlyEvents(events, 'response.output_item.done');
    const final = finalResponse(events);
    assert.deepEqual(final.output, [done?.item]);
    assert.deepEqual(comparable(final), comparable(await client.create({ input: 'Count from 1 to 3' })));
    for (const { response } of onlyEvents(events, 'response.created')) {
      assert.deepEqual([response.status, response.usage, response.output], ['in_progress', null, []]);
      assert.equal(response.id, final.id);
    }
  });

  it('sandbox POST /v1/responses names each event by its type and sends no [DONE]', async () => {
    const response = await fetch(`${sandbox.url}/v1/responses`, {
      method: 'POST',
      body: JSON.stringify({ model: responsesModel, input: 'hi', stream: true }),
    });
    assert.match(response.headers.get('content-type') ?? '', /^text\/event-stream/);
    const blocks = (await response.text()).split('\n\n').slice(0, -1);
    for (const block of blocks) {
      const [, name, data] = /^event: (.+)\ndata: (.+)$/.exec(block) ?? [];
      assert.equal(JSON.parse(String(data)).type, name);
    }
    assert.match(blocks.at(-1) ?? '', /^event: response\.completed\n/);
  });

  it('sandbox POST /v1/responses streams an answer that the official stream helper joins', async () => {
    const runner = client.openai.responses.stream({
      model: responsesModel,
      input: 'WORDS:40',
      reasoning: { summary: 'auto' },
    });
    let text = '';
    runner.on('response.output_text.delta', ({ delta }) => {
      text += delta;
    });
    const final = await runner.finalResponse();
    assert.equal(text, final.output_text);
    assert.match(text, /word40$/);
  });

  it('sandbox POST /v1/responses ends incomplete at max_output_tokens, held and streamed, for text and calls', async () => {
    const limited = { input: 'WORDS:30', max_output_tokens: 16 };
    const events = await client.streamed(limited);
    assert.equal(events.at(-1)?.type, 'response.incomplete');
    for (const response of [await client.create(limited), finalResponse(events)]) {
      assert.equal(response.status, 'incomplete');
      assert.deepEqual(response.incomplete_details, { reason: 'max_output_tokens' });
      assert.equal(response.usage?.output_tokens, 16);
      const [message] = response.output;
      assert.ok(message?.type === 'message' && message.content[0]?.type === 'output_text');
      assert.match(message.content[0].text, /word16$/);
      assert.equal(message.status, 'incomplete');
    }
    const cut = await client.create({
      input: `TOOL:get_weather {"city": "${'x '.repeat(40)}"}`,
      tools: [weatherTool],
      max_output_tokens: 20,
    });
    assert.deepEqual([cut.status, functionCalls(cut)[0]?.status], ['incomplete', 'incomplete']);
    const thinking = await client.create({ input: 'hi', reasoning: { effort: 'high' }, max_output_tokens: 16 });
    assert.deepEqual(
      thinking.output.map(({ type }) => type),
      ['reasoning'],
    );
    assert.equal(thinking.usage?.output_tokens_details.reasoning_tokens, 16);
  });

  it('sandbox POST /v1/responses reports the format and size of an image, and names a file', async () => {
    const png =
      'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
    const response = await client.create({
      input: [
        {
          role: 'user',
          content: [
            { type: 'input_image', image_url: png, detail: 'auto' },
            { type: 'input_file', filename: 'notes.pdf', file_data: 'data:application/pdf;base64,AAAA' },
          ],
        },
      ],
    });
    assert.match(response.output_text, /PNG image of 1×1 pixels.*notes\.pdf/);
  });

  it('sandbox POST /v1/responses counts tokens like its chat, and a repeated start as cached', async () => {
    const text = `${Array.from({ length: 150 }, (_, index) => `clue${index}`).join(' ')} what?`;
    const first = (await client.create({ input: text })).usage;
    const second = (await client.create({ input: text })).usage;
    assert.deepEqual([first?.input_tokens_details.cached_tokens, second?.input_tokens_details.cached_tokens], [0, 128]);
    const chat = await client.openai.chat.completions.create({
      model: responsesModel,
      messages: [{ role: 'user', content: text }],
    });
    assert.deepEqual(
      [second?.input_tokens, second?.output_tokens, second?.total_tokens],
      [chat.usage?.prompt_tokens, chat.usage?.completion_tokens, chat.usage?.total_tokens],
    );
    assert.equal(chat.choices[0]?.message.content, (await client.create({ input: text })).output_text);
    const called = { name: 'look_up', arguments: '{"word":"otter"}' };
    const turns = await client.create({
      instructions: 'Be brief.',
      input: [
        { role: 'user', content: 'hi' },
        { role: 'assistant', content: 'Hello!' },
        { role: 'user', content: 'otter?' },
        { type: 'function_call', call_id: 'call_1', ...called },
        { type: 'function_call_output', call_id: 'call_1', output: 'a mammal' },
      ],
    });
    const chatTurns = await client.openai.chat.completions.create({
      model: responsesModel,
      messages: [
        { role: 'developer', content: 'Be brief.' },
        { role: 'user', content: 'hi' },
        { role: 'assistant', content: 'Hello!' },
        { role: 'user', content: 'otter?' },
        { role: 'assistant', tool_calls: [{ id: 'call_1', type: 'function', function: called }] },
        { role: 'tool', tool_call_id: 'call_1', content: 'a mammal' },
      ],
    });
    assert.equal(turns.usage?.input_tokens, chatTurns.usage?.prompt_tokens);
    assert.equal(turns.output_text, chatTurns.choices[0]?.message.content);
  });

  it('sandbox POST /v1/responses returns log probabilities when include requests them', async () => {
    const asked: ResponseParameters = { input: 'WORDS:3', include: ['message.output_text.logprobs'], top_logprobs: 2 };
    const events = await client.streamed(asked);
    const [message] = (await client.create(asked)).output;
    assert.ok(message?.type === 'message' && message.content[0]?.type === 'output_text');
    const { logprobs } = message.content[0];
    assert.deepEqual(
      logprobs?.map(({ token, top_logprobs }) => [token, top_logprobs.length]),
      [
        ['word1', 2],
        [' word2', 2],
        [' word3', 2],
      ],
    );
    const deltas = onlyEvents(events, 'response.output_text.delta').flatMap((event) => event.logprobs);
    assert.deepEqual(
      deltas.map(({ token }) => token),
      logprobs?.map(({ token }) => token),
    );
  });
});
