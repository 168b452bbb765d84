import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { createBedrock } from '../../../workers/vendors/bedrock/bedrock.ts';
import type { Fields } from '../contracts/chat-field-rows.ts';
import { callOf, collect, sendJson } from '../contracts/fixture-vendor.ts';
import { VendorBench } from '../contracts/vendor-bench.ts';
import { answerOf, text, toJson } from '../recorded/recorded-bedrock.ts';

const apiKey = 'ABSKQmVkcm9ja0FQSUtleS10ZXN0LTAxMjM0NTY3ODk=';
const model = 'us.anthropic.claude-opus-4-6-v1';
const tools = [{ type: 'function', function: { name: 'read' } }];
const mark = { cache_control: { type: 'ephemeral' } };

const user = (content: unknown): Fields => ({ role: 'user', content });
const said = (words: string): Fields => ({ type: 'text', text: words });
const pdf: Fields = { type: 'file', file: { file_data: 'data:application/pdf;base64,JVBERg==', filename: 'a.pdf' } };
const plain: Fields = { type: 'file', file: { file_data: 'data:text/plain;base64,w7M=', filename: 'b' } };
const image: Fields = { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } };

const sentPdf = { document: { format: 'pdf', name: 'a', source: { bytes: 'JVBERg==' } } };
const sentPlain = { document: { format: 'txt', name: 'b', source: { bytes: 'w7M=' } } };
const sentImage = { image: { format: 'png', source: { bytes: 'iVBORw0KGgo=' } } };
const point = { cachePoint: { type: 'default' } };
const added = { text: '.' };

describe('documents at Bedrock', () => {
  const bench = new VendorBench((baseUrl) => createBedrock({ name: 'bedrock', baseUrl, apiKey }));
  before(() => bench.server.answer((response) => sendJson(response, 200, toJson(answerOf([text('Hi')])))));

  async function turnsFor(messages: Fields[]): Promise<{ content: unknown }[]> {
    await bench.vendor.chat(callOf({ model, stream: false, request: JSON.stringify({ messages, tools }) }), collect());
    return (bench.posted as { messages: { content: unknown }[] }).messages;
  }

  it('a turn of documents without a text gets one at its end, without which Bedrock refuses it', async () => {
    const cases: [given: Fields[], sent: Fields[]][] = [
      [[user([pdf])], [sentPdf, added]],
      [[user([plain, image])], [sentPlain, sentImage, added]],
      [[user([said(' '), pdf])], [sentPdf, added]],
      [[user([image, { ...pdf, ...mark }])], [sentImage, sentPdf, added, point]],
      // A mark in the middle stays there.
      [[user([{ ...pdf, ...mark }, plain])], [sentPdf, point, sentPlain, added]],
    ];
    for (const [given, sent] of cases) assert.deepEqual(await turnsFor(given), [{ role: 'user', content: sent }]);
  });

  it('very many documents of one name get names of their own in time in proportion to them', async () => {
    const count = 30_000;
    const [{ content } = { content: [] }] = await turnsFor([user(Array.from({ length: count }, () => plain))]);
    const names = (content as { document?: { name: string } }[]).map(({ document }) => document?.name);
    assert.deepEqual([names[0], names[1], names[count - 1]], ['b', 'b 2', `b ${count}`]);
  });

  it('a turn that has a text anywhere, or no document, gets no other', async () => {
    const cases: [given: Fields[], sent: Fields[]][] = [
      [
        [user([pdf]), user('Read!')],
        [sentPdf, { text: 'Read!' }],
      ],
      [[user([said('Read!'), pdf])], [{ text: 'Read!' }, sentPdf]],
      [[user([image])], [sentImage]],
    ];
    for (const [given, sent] of cases) assert.deepEqual(await turnsFor(given), [{ role: 'user', content: sent }]);
  });

  it("a document next to a tool's result gets a text: that of the result does not count", async () => {
    const call = { id: 'c1', type: 'function', function: { name: 'read', arguments: '{}' } };
    const [, , last] = await turnsFor([
      user('Read a.pdf.'),
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: 'c1', content: 'PDF file read: a.pdf' },
      user([pdf]),
    ]);
    const result = { toolResult: { toolUseId: 'c1', content: [{ text: 'PDF file read: a.pdf' }] } };
    assert.deepEqual(last, { role: 'user', content: [result, sentPdf, added] });
  });
});
