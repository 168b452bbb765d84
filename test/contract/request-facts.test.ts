import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { requestFacts } from '../../api/admission/request-facts.ts';
import { prepareChat } from '../../api/endpoints/prepare-chat.ts';
import { prepareImageEdit } from '../../api/endpoints/prepare-image.ts';
import { prepareImageEditForm } from '../../api/endpoints/prepare-image-form.ts';
import { prepareMessageCount, prepareMessages } from '../../api/endpoints/prepare-messages.ts';
import { prepareResponse } from '../../api/endpoints/prepare-response.ts';
import { Upload } from '../../shared/blobs/upload.ts';

const body = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));
const link = 'https://example.com/otter.png';

describe('the facts that a hold is reckoned by', () => {
  it('have the bytes of a request, not its characters', () => {
    const content = '水獺'.repeat(50);
    const prepared = prepareChat(body({ model: 'm', messages: [{ role: 'user', content }] }));
    const { bytes } = requestFacts(prepared, 'chat');
    assert.equal(bytes, Buffer.byteLength(String(prepared.request)));
    assert.ok(bytes > 300, `${bytes}`);
    const large = { ...prepared, request: new Uint8Array(Buffer.from(prepared.request)) };
    assert.deepEqual(requestFacts(large, 'chat'), requestFacts(prepared, 'chat'));
  });

  it('have the images that a request links to, by whatever endpoint, and none that a text speaks of', () => {
    const text = { type: 'text', text: 'say "image_url": twice' };
    const image = { type: 'image_url', image_url: { url: link } };
    const chat = prepareChat(body({ model: 'm', messages: [{ role: 'user', content: [text, image, image] }] }));
    assert.equal(requestFacts(chat, 'chat').imageLinks, 2);
    const shown = { type: 'image', source: { type: 'url', url: link } };
    const message = { model: 'm', max_tokens: 5, messages: [{ role: 'user', content: [text, shown] }] };
    assert.equal(requestFacts(prepareMessages(body(message)), 'chat').imageLinks, 1);
    const content = [{ type: 'input_image', image_url: link }];
    const response = prepareResponse(body({ model: 'm', input: [{ role: 'user', content }] }));
    assert.equal(requestFacts(response, 'chat').imageLinks, 1);
  });

  it('have images that come as data as images, not as text', () => {
    const of = (url: string) => {
      const image = { type: 'image_url', image_url: { detail: 'high', url } };
      const chat = prepareChat(body({ model: 'm', messages: [{ role: 'user', content: [image, image] }] }));
      const large = { ...chat, request: new Uint8Array(Buffer.from(chat.request)) };
      assert.deepEqual(requestFacts(large, 'chat'), requestFacts(chat, 'chat'));
      return requestFacts(chat, 'chat');
    };
    const [small, large] = [of('data:image/png;base64,aaaa'), of(`data:image/png;base64,${'a'.repeat(1_000_000)}`)];
    assert.deepEqual(large, small);
    assert.equal(small.imageLinks, 2);
    assert.ok(of(link).bytes > small.bytes, 'a link is text');
  });

  it('have the images that are to be edited', () => {
    const images = [{ image_url: link }, { image_url: link }];
    const json = prepareImageEdit(body({ model: 'm', prompt: 'Make it night', images }));
    assert.deepEqual([requestFacts(json, 'image').imageLinks, requestFacts(json, 'image').images], [2, 1]);
    const file = { field: 'image', blob: '2026112100/1', name: 'otter.png', type: 'image/png', bytes: 10 };
    const fields = new Map([
      ['model', ['m']],
      ['prompt', ['Make it night']],
    ]);
    const form = prepareImageEditForm({
      fields,
      files: [new Upload(file), new Upload({ ...file, blob: '2026112100/2' })],
    });
    assert.equal(requestFacts(form, 'image').imageLinks, 2);
  });

  it('have no output where tokens are only counted', () => {
    const count = prepareMessageCount(body({ model: 'm', messages: [{ role: 'user', content: 'Hi' }] }));
    assert.equal(requestFacts(count, 'chat').outputTokens, 0);
  });
});
