import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { embeddings } from '../../../../api/endpoints/embeddings/embeddings.ts';
import { imageView } from '../../../../api/endpoints/images/image-view.ts';
import { BlobFrame } from '../../../../api/replies/blob-frame.ts';
import { heldBody } from '../../../../api/replies/held-body.ts';
import type { View, ViewedJob } from '../../../../api/replies/view.ts';
import { embeddingsBody } from '../../../../shared/capabilities/embedding.ts';
import { formatImageEnd } from '../../../../shared/capabilities/image.ts';

const job: ViewedJob = {
  id: '1',
  model: 'a "model" of ümlauts',
  createdAt: 0,
  viewOptions: {},
  link: (file) => `https://files/${file}`,
};

/** The body that a view makes of an end frame in a blob: of its bytes, and of its text. */
function bodies(view: View, text: string): { ofBytes: string | undefined; ofText: string } {
  const frame = new BlobFrame({ seq: 1, type: 'end', text: '', isBlob: true }, Buffer.from(text), 'blob');
  const ofText = view.held(job, [frame]);
  // Of a file only the first bytes are shown, and the rest follows.
  const start = view.heldStart?.(job, Buffer.from(text).subarray(0, 64));
  if (start === undefined) return { ofBytes: undefined, ofText };
  const { body } = heldBody(view, job, [frame]);
  assert.equal(String(body), start.text + Buffer.from(text).subarray(start.replaces).toString());
  return { ofBytes: String(body), ofText };
}

describe('held answers from blobs', () => {
  it('embeddings have the same body from bytes as from text', () => {
    const { ofBytes, ofText } = bodies(embeddings.view, embeddingsBody(['"AAAA"', '[1,2]'], { prompt_tokens: 3 }));
    assert.equal(ofBytes, ofText);
    assert.equal(JSON.parse(ofText).model, job.model);
  });

  it('images in base64 have the same body from bytes as from text', () => {
    const end = { created: 1, data: [{ b64_json: 'QUJD', revised_prompt: 'zwölf Boote 🚤' }] };
    const { ofBytes, ofText } = bodies(imageView('image_generation'), formatImageEnd(end));
    assert.equal(ofBytes, ofText);
    assert.deepEqual(JSON.parse(ofText), end);
  });

  it('images whose base64 is still in bytes have the same body as those in text', () => {
    const image = { revised_prompt: 'zwölf Boote 🚤', b64_json: 'QUJD' };
    const more = { created: 1, output_format: 'png', usage: { total_tokens: 3 } };
    const inBytes = { ...image, b64_json: Buffer.from('QUJD') };
    for (const data of [[inBytes], [inBytes, image, { b64_json: Buffer.from('QQ==') }], [{ ...inBytes, usage: {} }]]) {
      const parts = formatImageEnd({ ...more, data });
      assert.ok(Array.isArray(parts));
      const { ofBytes, ofText } = bodies(imageView('image_generation'), Buffer.concat(parts).toString());
      assert.equal(ofBytes ?? ofText, ofText);
      // Usage of one image is for streams only.
      const shown = data.map(({ usage: _, ...image }: Record<string, unknown>) => ({
        ...image,
        b64_json: String(image.b64_json),
      }));
      assert.deepEqual(JSON.parse(ofText), { ...more, data: shown });
    }
  });

  it('images that are files are made of text, because they need their links', () => {
    const { ofBytes, ofText } = bodies(
      imageView('image_generation'),
      formatImageEnd({ created: 1, data: [{ file: 'a', type: 'image/png', bytes: 3 }] }),
    );
    assert.equal(ofBytes, undefined);
    assert.deepEqual(JSON.parse(ofText).data, [{ url: 'https://files/a' }]);
  });
});
