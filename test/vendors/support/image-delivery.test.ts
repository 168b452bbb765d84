import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { describe, it } from 'node:test';
import { createDownloader } from '../../../workers/http/download.ts';
import { deliverImages, ImageDelivery } from '../../../workers/vendors/support/image-delivery.ts';
import { type Answer, bodyText, callOf, startFixtureVendor } from '../contracts/fixture-vendor.ts';
import { memoryFiles } from '../contracts/memory-files.ts';

const png = Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), Buffer.alloc(200_000, 7)]);
const whole: Answer = (response) => response.writeHead(200, { 'content-type': 'image/png' }).end(png);
const half: Answer = (response) => {
  response.writeHead(200, { 'content-type': 'image/png', 'content-length': png.length });
  response.write(png.subarray(0, 100_000), () => response.destroy());
};
const status =
  (code: number): Answer =>
  (response) =>
    response.writeHead(code).end();

/** Delivers the image of a link whose server gives these answers, one after the other. */
async function deliverFrom(answers: readonly Answer[], wanted: 'b64_json' | 'url') {
  const server = await startFixtureVendor();
  try {
    server.answer((response, request) => answers[server.requests.length - 1]?.(response, request));
    const { origin } = new URL(server.baseUrl);
    const { files, saved } = memoryFiles();
    const delivery = new ImageDelivery(callOf({ files }), wanted, createDownloader({ trustedOrigin: origin }));
    const delivered = deliverImages({ data: [{ url: `${origin}/1.png` }] }, delivery);
    const outcome = await delivered.then(
      ({ body }) => JSON.parse(bodyText(body)).data[0],
      (error) => error,
    );
    return { outcome, saved, asked: server.requests.length };
  } finally {
    await server.close();
  }
}

const formats = ['b64_json', 'url'] as const;
const refused = { name: 'ApiError', code: 'server_error', message: /an image that is none|text in place of an image/ };

describe('ImageDelivery', () => {
  for (const wanted of formats) {
    it(`ImageDelivery delivers no base64 that is no image, which would be charged, as ${wanted}`, async () => {
      const page = Buffer.from('<!DOCTYPE html><title>Too many requests</title>').toString('base64');
      for (const b64_json of ['!!!!', 'not base64 at all', '====', page]) {
        const { files, saved } = memoryFiles();
        const delivery = new ImageDelivery(callOf({ files }), wanted, () => assert.fail('it is no link'));
        await assert.rejects(deliverImages({ data: [{ b64_json }] }, delivery), refused, b64_json);
        assert.deepEqual(saved, []);
      }
    });

    it(`ImageDelivery delivers no file that is no image, whatever its server says, as ${wanted}`, async () => {
      for (const text of ['', '<html>This link has expired.</html>', '{"error":"gone"}']) {
        const { files, saved } = memoryFiles();
        const content = Readable.from(text === '' ? [] : [Buffer.from(text)]);
        const download = async () => ({ content, type: 'image/png' });
        const delivery = new ImageDelivery(callOf({ files }), wanted, download);
        await assert.rejects(deliverImages({ data: [{ url: 'https://vendor.example/1' }] }, delivery), refused, text);
        assert.deepEqual(saved, []);
        assert.ok(content.destroyed, 'the connection stays open');
      }
    });

    it(`ImageDelivery fetches an image again whose connection broke or whose server was in trouble, as ${wanted}`, async () => {
      for (const answers of [
        [half, whole],
        [status(503), whole],
        [status(500), half, whole],
      ]) {
        const { outcome, saved, asked } = await deliverFrom(answers, wanted);
        assert.equal(asked, answers.length);
        if (wanted === 'url')
          assert.deepEqual([outcome.file, saved], ['file-1', [{ type: 'image/png', content: png }]]);
        else assert.equal(outcome.b64_json, png.toString('base64'));
      }
      const { outcome, asked } = await deliverFrom([half, half, half, whole], wanted);
      assert.deepEqual([outcome.code, asked], ['server_error', 3]);
    });

    it(`ImageDelivery does not fetch an image again that is gone or not for it, as ${wanted}`, async () => {
      for (const code of [403, 404, 410]) {
        const { outcome, asked } = await deliverFrom([status(code), whole], wanted);
        assert.deepEqual([outcome.code, asked], ['server_error', 1]);
      }
    });

    it(`ImageDelivery delivers an image whose bytes arrive in any parts as ${wanted}`, async () => {
      const { files, saved } = memoryFiles();
      const parts = [png.subarray(0, 1), png.subarray(1, 5), png.subarray(5, 100), png.subarray(100)];
      const download = async () => ({ content: Readable.from(parts), type: 'application/octet-stream' });
      const delivery = new ImageDelivery(callOf({ files }), wanted, download);
      const { body } = await deliverImages({ data: [{ url: 'https://vendor.example/1' }] }, delivery);
      const [image] = JSON.parse(bodyText(body)).data;
      if (wanted === 'url') assert.deepEqual(saved, [{ type: 'image/png', content: png }]);
      else assert.equal(image.b64_json, png.toString('base64'));
    });
  }

  it('ImageDelivery delivers an image of a kind that it does not know, by a link or as base64', async () => {
    const unknown = Buffer.concat([Buffer.from('BM'), Buffer.alloc(100, 5)]);
    const { files, saved } = memoryFiles();
    const download = async () => ({ content: Readable.from([unknown]), type: 'image/bmp' });
    const link = { data: [{ url: 'https://vendor.example/1' }] };
    await deliverImages(link, new ImageDelivery(callOf({ files }), 'url', download));
    assert.deepEqual(saved, [{ type: 'image/png', content: unknown }]);
    const b64_json = unknown.toString('base64');
    const { body } = await deliverImages({ data: [{ b64_json }] }, new ImageDelivery(callOf({}), 'b64_json', download));
    assert.equal(JSON.parse(bodyText(body)).data[0].b64_json, b64_json);
  });

  it('ImageDelivery stores a drawing in which scripts may run as a file that browsers only save', async () => {
    const drawing = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>');
    const { files, saved } = memoryFiles();
    const download = async () => ({ content: Readable.from([drawing]), type: 'image/svg+xml' });
    const delivery = new ImageDelivery(callOf({ files }), 'url', download);
    await deliverImages({ data: [{ url: 'https://vendor.example/1' }] }, delivery);
    assert.deepEqual(saved, [{ type: 'application/octet-stream', content: drawing }]);
  });

  it('ImageDelivery delivers an image that its vendor has put into a data URL, in the place of base64 or of a link', async () => {
    const dataUrl = `data:image/png;base64,${png.toString('base64')}`;
    for (const image of [{ b64_json: dataUrl }, { url: dataUrl }, { url: dataUrl.replace('data', 'DATA') }]) {
      const { files, saved } = memoryFiles();
      const deliver = (wanted: 'b64_json' | 'url') =>
        deliverImages(
          { data: [image] },
          new ImageDelivery(callOf({ files }), wanted, () => assert.fail('it is no link')),
        );
      const { body } = await deliver('b64_json');
      assert.equal(JSON.parse(bodyText(body)).data[0].b64_json, png.toString('base64'));
      await deliver('url');
      assert.deepEqual(saved, [{ type: 'image/png', content: png }]);
    }
    const page = { url: 'data:text/html,<html>Later</html>' };
    const delivery = new ImageDelivery(callOf({}), 'url', () => assert.fail('it is no link'));
    await assert.rejects(deliverImages({ data: [page] }, delivery), refused);
  });
});
