import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { beforeEach, describe, it } from 'node:test';
import type { Offering } from '../../../workers/vendors/vendor.ts';
import { type ReceivedRequest, sendJson } from './fixture-vendor.ts';
import { describeImageVendor, ImageBench, type ImageWire, imageJob, png } from './image-vendor-contract.ts';
import { memoryFiles } from './memory-files.ts';

/** A vendor that makes an image while it is waited for. */
export interface DirectImageVendor extends Pick<ImageWire, 'refusal' | 'asked'> {
  readonly create: (baseUrl: string) => Offering<'image'>;
  readonly model: string;
  /** The answer that holds an image, in base64. */
  readonly made: (base64: string) => object;
  /** What a creation asks for, as an object. */
  readonly read: (request: ReceivedRequest) => unknown;
}

/** A vendor of images that are in the answer. */
export class DirectImageBench extends ImageBench {
  private readonly wire: DirectImageVendor;

  constructor(wire: DirectImageVendor) {
    super((baseUrl) => wire.create(new URL(baseUrl).origin), wire.model);
    this.wire = wire;
  }

  get asked(): unknown {
    return this.wire.read(this.server.requests.at(-1) ?? assert.fail('nothing was asked for'));
  }

  /** From now on answers so; left out: with an image. */
  answer(answer?: (response: ServerResponse) => void): void {
    this.server.requests.length = 0;
    const body = JSON.stringify(this.wire.made(png.toString('base64')));
    this.server.answer(answer ?? ((response) => sendJson(response, 200, body)));
  }

  answerCreation(answer: (response: ServerResponse) => void): void {
    this.answer(answer);
  }
}

/** What every vendor must do that answers its images at once, whatever it speaks on its own side. */
export function describeDirectImageVendor(name: string, wire: DirectImageVendor): void {
  describeImageVendor(name, () => new DirectImageBench(wire), {
    ...wire,
    defaults: { output_compression: 100 },
    refused: [
      [{ n: 5 }, 'n'],
      [{ output_compression: 50 }, 'output_compression'],
      [{ size: '1000x100' }, 'size'],
      [{ size: '8192x8192' }, 'size'],
    ],
  });

  describe(`${name} keeps the contract of an image vendor that answers at once`, () => {
    const bench = new DirectImageBench(wire);
    beforeEach(() => bench.answer());

    it(`${name} stores the image when a link is wanted`, async () => {
      const { files, saved } = memoryFiles();
      const { body } = await bench.make({ files, request: imageJob({}, { response_format: 'url' }) });
      const { created, data } = JSON.parse(body);
      assert.ok(Math.abs(created - Date.now() / 1000) < 5);
      const [{ file, type, bytes }] = data;
      assert.deepEqual([file, type, bytes, data.length], ['file-1', 'image/png', png.length, 1]);
      assert.deepEqual(saved, [{ type: 'image/png', content: png }]);
      bench.assertCreatedOnce();
    });

    it(`${name} returns base64 when response_format is b64_json`, async () => {
      const { body } = await bench.make({ request: imageJob({}, { response_format: 'b64_json' }) });
      const { data, output_format: format } = JSON.parse(body);
      assert.deepEqual([data[0].b64_json, data.length, format], [png.toString('base64'), 1, 'png']);
    });

    it(`${name} fails with server_error when the answer has no image`, async () => {
      for (const body of [{}, { image: 5, predictions: [{}] }, wire.made('')]) {
        bench.answer((response) => sendJson(response, 200, JSON.stringify(body)));
        assert.equal((await bench.failure()).code, 'server_error', JSON.stringify(body));
      }
    });
  });
}
