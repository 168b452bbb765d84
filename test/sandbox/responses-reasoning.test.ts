import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type OpenAI from 'openai';
import { type RunningSandbox, startSandbox } from '../../sandbox/server.ts';
import {
  asInput,
  finalResponse,
  functionCalls,
  onlyEvents,
  type ResponseParameters,
  ResponsesClient,
  weatherTool,
} from '../support/responses-client.ts';

let sandbox: RunningSandbox;
let client: ResponsesClient;
before(async () => {
  sandbox = await startSandbox();
  client = new ResponsesClient(sandbox.url);
});
after(() => sandbox.close());

describe('sandbox POST /v1/responses, reasoning', () => {
  const asked: ResponseParameters = {
    input: 'Reply with exactly: done',
    reasoning: { effort: 'high', summary: 'auto' },
    include: ['reasoning.encrypted_content'],
  };

  it('sandbox responses reason first when an effort or summary is requested, and show a summary only on request', async () => {
    const plain = await client.create({ input: 'Reply with exactly: done' });
    assert.deepEqual(
      plain.output.map(({ type }) => type),
      ['message'],
    );
    const silent = await client.create({ input: 'Reply with exactly: done', reasoning: { effort: 'low' } });
    const [hidden] = silent.output;
    assert.ok(hidden?.type === 'reasoning');
    assert.deepEqual([hidden.summary, hidden.encrypted_content], [[], undefined]);
    assert.match(hidden.id, /^rs_/);
    const shown = await client.create(asked);
    const [item] = shown.output;
    assert.ok(item?.type === 'reasoning' && item.summary[0]?.text);
    assert.equal(typeof item.encrypted_content, 'string');
    assert.equal(shown.output_text, 'done');
    for (const { usage } of [silent, shown]) {
      assert.equal(usage?.output_tokens, Number(usage?.output_tokens_details.reasoning_tokens) + 1);
    }
    const none = await client.create({ input: 'Reply with exactly: done', reasoning: { effort: 'none' } });
    assert.equal(none.output.length, 1);
  });

  it('sandbox responses stream the summary before the text', async () => {
    const events = await client.streamed(asked);
    const kinds = [...new Set(events.map(({ type }) => type.replace('response.', '')))];
    assert.deepEqual(kinds, [
      ...['created', 'in_progress', 'output_item.added', 'reasoning_summary_part.added'],
      ...['reasoning_summary_text.delta', 'reasoning_summary_text.done', 'reasoning_summary_part.done'],
      ...['output_item.done', 'content_part.added', 'output_text.delta', 'output_text.done', 'content_part.done'],
      'completed',
    ]);
    const [item] = finalResponse(events).output;
    assert.ok(item?.type === 'reasoning');
    const deltas = onlyEvents(events, 'response.reasoning_summary_text.delta').map(({ delta }) => delta);
    assert.equal(deltas.join(''), item.summary[0]?.text);
    assert.equal(deltas.length, finalResponse(events).usage?.output_tokens_details.reasoning_tokens);
  });

  it('sandbox responses accept their encrypted reasoning back, across a tool call and without its id', async () => {
    const input: OpenAI.Responses.ResponseInput = [{ role: 'user', content: 'How is the weather?' }];
    const first = await client.create({ ...asked, input, tools: [weatherTool] });
    assert.deepEqual(
      first.output.map(({ type }) => type),
      ['reasoning', 'function_call'],
    );
    input.push(...asInput(first));
    for (const { call_id } of functionCalls(first))
      input.push({ type: 'function_call_output', call_id, output: 'rain' });
    assert.match((await client.create({ ...asked, input, tools: [weatherTool] })).output_text, /rain/);
    const [reasoning, ...rest] = first.output;
    const { id, ...unnamed } = reasoning as OpenAI.Responses.ResponseReasoningItem;
    assert.match(id, /^rs_/);
    const turns = [input[0], unnamed, ...rest, input.at(-1)] as OpenAI.Responses.ResponseInput;
    assert.match((await client.create({ ...asked, input: turns, tools: [weatherTool] })).output_text, /rain/);
  });

  it('sandbox responses reject encrypted reasoning that is altered or under another id', async () => {
    const [one] = (await client.create(asked)).output;
    const [other] = (await client.create(asked)).output;
    assert.ok(one?.type === 'reasoning' && other?.type === 'reasoning');
    const cases: Partial<OpenAI.Responses.ResponseReasoningItem>[] = [
      { id: `${one.id}-1` },
      { id: other.id },
      { encrypted_content: String(other.encrypted_content) },
      { encrypted_content: `x${one.encrypted_content}` },
      { encrypted_content: 'gAAAAAB' },
    ];
    for (const change of cases) {
      await assert.rejects(
        client.create({
          input: [
            { ...one, ...change },
            { role: 'user', content: 'hi' },
          ],
        }),
        {
          status: 400,
          code: 'invalid_encrypted_content',
        },
      );
    }
    const taken = await client.create({ input: [one, { role: 'user', content: 'Reply with exactly: ok' }] });
    assert.equal(taken.output_text, 'ok');
  });
});
