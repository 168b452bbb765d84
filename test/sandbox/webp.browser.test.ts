import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Page } from 'playwright-core';
import { PNG } from 'pngjs';
import { Canvas } from '../../sandbox/images/canvas.ts';
import type { Colour } from '../../sandbox/images/colour.ts';
import { type RunningSandbox, startSandbox } from '../../sandbox/server.ts';
import { TestBrowser } from '../console/browser.ts';
import { SeededRandom } from '../support/seeded-random.ts';

const palette: readonly Colour[] = Array.from({ length: 16 }, (_, at) => [at * 17, 255 - at * 11, (at * 97) % 256]);

/** Runs in a page, whose types are not those of Node. */
const decodeInPage = `async (base64) => {
  const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  const bitmap = await createImageBitmap(new Blob([bytes], { type: 'image/webp' }));
  const canvas = new OffscreenCanvas(bitmap.width, bitmap.height);
  const context = canvas.getContext('2d');
  context.drawImage(bitmap, 0, 0);
  const { data } = context.getImageData(0, 0, bitmap.width, bitmap.height);
  let text = '';
  for (let at = 0; at < data.length; at += 32768) text += String.fromCharCode(...data.subarray(at, at + 32768));
  return { width: bitmap.width, height: bitmap.height, data: btoa(text) };
}`;

describe("the sandbox's WebP in Chromium", () => {
  let browser: TestBrowser;
  let page: Page;
  let sandbox: RunningSandbox;
  before(async () => {
    sandbox = await startSandbox({ port: 0 });
    browser = await TestBrowser.start();
    page = await (await browser.context('http://127.0.0.1')).newPage();
  });
  after(async () => {
    await browser?.close();
    await sandbox?.close();
  });

  /** Width, height, and red, green, blue, alpha of each pixel. */
  async function decode(webp: Buffer): Promise<{ width: number; height: number; data: Buffer }> {
    const decoded = await page.evaluate<{ width: number; height: number; data: string }>(
      `(${decodeInPage})(${JSON.stringify(webp.toString('base64'))})`,
    );
    return { ...decoded, data: Buffer.from(decoded.data, 'base64') };
  }

  /** What is behind a transparent pixel has no colour. */
  function visible(pixels: Buffer): Buffer {
    for (let at = 0; at < pixels.length; at += 4) if (pixels[at + 3] === 0) pixels.fill(0, at, at + 4);
    return pixels;
  }

  async function assertSame(canvas: Canvas, transparent: boolean, name: string): Promise<void> {
    const png = PNG.sync.read(canvas.toPng(palette, transparent));
    const { width, height, data } = await decode(canvas.toWebp(palette, transparent));
    assert.deepEqual([width, height], [png.width, png.height], name);
    assert.ok(visible(data).equals(visible(png.data)), name);
  }

  const random = new SeededRandom(1);
  const below = (limit: number) => random.int(0, limit - 1);

  for (const [width, height] of [
    [1, 1],
    [1, 9],
    [2, 2],
    [7, 5],
    [64, 64],
    [333, 41],
    [9000, 3],
  ] as const) {
    it(`Chromium decodes every pixel of a sandbox WebP of ${width}×${height}`, async () => {
      for (const transparent of [false, true]) {
        const noise = new Canvas(width, height);
        for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) noise.fill(x, y, 1, 1, below(16));
        await assertSame(noise, transparent, 'noise');
        const boxes = new Canvas(width, height);
        for (let box = 0; box < 20; box++)
          boxes.fill(below(width), below(height), below(width), below(height), below(16));
        await assertSame(boxes, transparent, 'boxes');
        await assertSame(new Canvas(width, height), transparent, 'one colour');
      }
    });
  }

  it('sandbox images are WebP on request, held, by URL and streamed, with the pixels of the PNG', async () => {
    const ask = (fields: object) =>
      fetch(`${sandbox.url}/v1/images/generations`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'sandbox-image', prompt: 'An otter', size: '1024x1536', ...fields }),
      });
    const first = async (fields: object) =>
      (await (await ask(fields)).json()) as { output_format: string; data: [{ b64_json: string; url: string }] };
    const png = PNG.sync.read(Buffer.from((await first({})).data[0].b64_json, 'base64'));
    const held = await first({ output_format: 'webp', output_compression: 80 });
    assert.equal(held.output_format, 'webp');
    const webp = Buffer.from(held.data[0].b64_json, 'base64');
    const { width, height, data } = await decode(webp);
    assert.deepEqual([width, height], [1024, 1536]);
    assert.ok(data.equals(png.data));
    assert.ok(webp.length < 100_000, `${webp.length} bytes`);
    const linked = await fetch((await first({ output_format: 'webp', response_format: 'url' })).data[0].url);
    assert.equal(linked.headers.get('content-type'), 'image/webp');
    assert.ok(Buffer.from(await linked.arrayBuffer()).equals(webp));
    const events = await (await ask({ output_format: 'webp', stream: true, partial_images: 1 })).text();
    const pictures = events
      .split('\n\n')
      .filter(Boolean)
      .map((event) => JSON.parse(event.slice(event.indexOf('data: ') + 6)));
    assert.deepEqual(
      pictures.map(({ output_format }) => output_format),
      ['webp', 'webp'],
    );
    assert.equal((await decode(Buffer.from(pictures[0].b64_json, 'base64'))).width, 1024);
    assert.equal(pictures[1].b64_json, held.data[0].b64_json);
  });
});
