import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { requestFacts } from '../../../../api/admission/request-facts.ts';
import { parseChat } from '../../../../api/endpoints/chat/parse-chat.ts';
import { parseCompletion } from '../../../../api/endpoints/completions/parse-completion.ts';
import { parseImageEdit } from '../../../../api/endpoints/images/parse-image.ts';
import { parseImageEditForm } from '../../../../api/endpoints/images/parse-image-form.ts';
import { parseMessageCount, parseMessages } from '../../../../api/endpoints/messages/parse-messages.ts';
import { parseResponse } from '../../../../api/endpoints/responses/parse-response.ts';
import { requestBytes, textOf as requestTextOf } from '../../../../api/pipeline/request-text.ts';
import { Upload } from '../../../../shared/blobs/upload.ts';

const body = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));
const link = 'https://example.com/otter.png';

describe('requestFacts', () => {
  it('requestFacts counts the bytes of a request, not its characters', () => {
    const content = '水獺'.repeat(50);
    const parsed = parseChat(body({ model: 'm', messages: [{ role: 'user', content }] }));
    const { bytes } = requestFacts(parsed);
    assert.equal(bytes, Buffer.byteLength(requestTextOf(parsed.request)));
    assert.ok(bytes > 300, `${bytes}`);
    const large = { ...parsed, request: requestBytes([Buffer.from(requestTextOf(parsed.request))]) };
    assert.deepEqual(requestFacts(large), requestFacts(parsed));
  });

  it('requestFacts counts the linked images of a request to any endpoint, not images that a text mentions', () => {
    const text = { type: 'text', text: 'say "image_url": twice' };
    const image = { type: 'image_url', image_url: { url: link } };
    const chat = parseChat(body({ model: 'm', messages: [{ role: 'user', content: [text, image, image] }] }));
    assert.equal(requestFacts(chat).imageInputs, 2);
    const shown = { type: 'image', source: { type: 'url', url: link } };
    const message = { model: 'm', max_tokens: 5, messages: [{ role: 'user', content: [text, shown] }] };
    assert.equal(requestFacts(parseMessages(body(message))).imageInputs, 1);
    const content = [{ type: 'input_image', image_url: link }];
    const response = parseResponse(body({ model: 'm', input: [{ role: 'user', content }] }));
    assert.equal(requestFacts(response).imageInputs, 1);
  });

  it('requestFacts counts the bytes of inline image data as an image, not as text', () => {
    const of = (url: string) => {
      const image = { type: 'image_url', image_url: { detail: 'high', url } };
      const chat = parseChat(body({ model: 'm', messages: [{ role: 'user', content: [image, image] }] }));
      const large = { ...chat, request: requestBytes([Buffer.from(requestTextOf(chat.request))]) };
      assert.deepEqual(requestFacts(large), requestFacts(chat));
      return requestFacts(chat);
    };
    const [small, large] = [of('data:image/png;base64,aaaa'), of(`data:image/png;base64,${'a'.repeat(1_000_000)}`)];
    const textOf = ({ bytes, mediaBytes = 0 }: ReturnType<typeof of>): number => bytes - mediaBytes;
    assert.equal(textOf(large), textOf(small));
    assert.deepEqual([small.imageInputs, large.imageInputs], [2, 2]);
    assert.equal(textOf(of(link)), of(link).bytes, 'a link is text');
    const text = of(`data:text/plain;base64,${'a'.repeat(1000)}`);
    assert.equal(textOf(text), text.bytes, 'what is no image is text');
  });

  it('requestFacts counts PDFs and linked files as documents, but not inline text files', () => {
    const chatOf = (file: object) => {
      const content = [{ type: 'file', file }];
      return requestFacts(parseChat(body({ model: 'm', messages: [{ role: 'user', content }] }))).documents;
    };
    assert.equal(chatOf({ file_data: 'data:application/pdf;base64,AAAA' }), 1);
    assert.equal(chatOf({ file_id: 'file-1' }), 1);
    assert.equal(chatOf({ file_data: 'data:text/csv;base64,AAAA' }), undefined);
    const content = [{ type: 'input_file', file_url: 'https://example.com/a.pdf' }];
    const response = parseResponse(body({ model: 'm', input: [{ role: 'user', content }] }));
    assert.equal(requestFacts(response).documents, 1);
  });

  it('requestFacts has the limit of the reasoning that a request to any endpoint has, if it is an amount', () => {
    const messages = [{ role: 'user', content: 'Hi' }];
    for (const [limit, expected] of [
      [4096, 4096],
      [undefined, undefined],
      [0, undefined],
      [-1, undefined],
      [0.5, undefined],
      ['4096', undefined],
    ]) {
      const more = { model: 'm', thinking_budget: limit };
      const parsed = [
        parseChat(body({ ...more, messages })),
        parseMessages(body({ ...more, max_tokens: 5, messages })),
        parseResponse(body({ ...more, input: 'Hi' })),
        parseCompletion(body({ ...more, prompt: 'Hi' })),
      ];
      const found = parsed.map((each) => requestFacts(each).reasoningTokens);
      assert.deepEqual(found, Array(4).fill(expected), String(limit));
    }
  });

  it('requestFacts takes the larger of max_tokens and max_completion_tokens', () => {
    const messages = [{ role: 'user', content: 'Hi' }];
    const chat = parseChat(body({ model: 'm', messages, max_completion_tokens: 1, max_tokens: 9000 }));
    assert.equal(requestFacts(chat).outputTokens, 9000);
  });

  it('requestFacts counts the input images of an image edit, as JSON and as a form', () => {
    const images = [{ image_url: link }, { image_url: link }];
    const json = parseImageEdit(body({ model: 'm', prompt: 'Make it night', images }));
    assert.deepEqual([requestFacts(json).imageInputs, requestFacts(json).images], [2, 1]);
    const file = { field: 'image', blob: '2026112100/1', name: 'otter.png', type: 'image/png', bytes: 10 };
    const fields = new Map([
      ['model', ['m']],
      ['prompt', ['Make it night']],
    ]);
    const form = parseImageEditForm({
      fields,
      files: [new Upload(file), new Upload({ ...file, blob: '2026112100/2' })],
    });
    assert.equal(requestFacts(form).imageInputs, 2);
  });

  it('requestFacts reports no output tokens for a request that only counts tokens', () => {
    const count = parseMessageCount(body({ model: 'm', messages: [{ role: 'user', content: 'Hi' }] }));
    assert.equal(requestFacts(count).outputTokens, 0);
  });
});
