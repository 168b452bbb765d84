import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { after, before, describe, it } from 'node:test';
import { Blobs } from '../../../../shared/blobs/blobs.ts';
import { Slots } from '../../../../shared/runtime/slots.ts';
import { executeEmbedding } from '../../../../workers/execute/execute-embedding.ts';
import { executeSpeech } from '../../../../workers/execute/execute-speech.ts';
import { callFiles } from '../../../../workers/run/job-run.ts';
import { deliverLinks, ImageDelivery } from '../../../../workers/vendors/support/image-delivery.ts';
import type { FrameSink, Vendor, VendorCall } from '../../../../workers/vendors/vendor.ts';
import { madeUpModel } from '../../../support/routed-model.ts';

const megabyte = 1024 * 1024;
const error = { name: 'ApiError', code: 'server_error' };

describe('endless vendor answers', () => {
  let folder: string;
  let blobs: Blobs;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sluice-test-answers-'));
    blobs = await Blobs.open(folder);
  });
  after(async () => {
    blobs?.close();
    await rm(folder, { recursive: true, force: true });
  });

  const sink: FrameSink = { write: () => true, drained: async () => undefined };

  function callOf(request: object): VendorCall {
    const { signal } = new AbortController();
    return {
      model: 'm',
      stream: false,
      request: JSON.stringify(request),
      signal,
      silenceMs: 1000,
      uploads: [],
      files: callFiles(blobs, 'account'),
    };
  }

  /** Files that lie in the folder. */
  async function stored(): Promise<string[]> {
    const all = await readdir(join(folder, 'blobs'), { recursive: true, withFileTypes: true });
    return all.filter((entry) => entry.isFile() && entry.name !== 'identity').map(({ name }) => name);
  }

  it('executeSpeech fails for endless stored audio, reads no further, and stores nothing', async () => {
    const text = JSON.stringify({ audio: Buffer.alloc(24 * 1024).toString('base64') });
    let pieces = 0;
    const speak: Vendor['speak'] = async (_call, audio) => {
      for (; pieces < 8000; pieces++) if (!audio.write({ type: 'delta', text })) await audio.drained();
      return { body: '{"usage":null}', usage: null };
    };
    const row = madeUpModel({ id: 'voice', capability: 'speech', speech: { events: false } } as never);
    const call = callOf({ input: 'Hello.', voice: 'v', response_format: 'wav' });
    const vendor = { name: 'v', speak, close: async () => undefined };
    await assert.rejects(executeSpeech({ vendor, row, endpoint: 'speech', keep: true, call, sink }), error);
    const bytes = pieces * 24 * 1024;
    assert.ok(bytes > 60 * megabyte && bytes < 70 * megabyte, `${bytes} bytes were taken`);
    assert.deepEqual(await stored(), []);
  });

  it('deliverLinks fails once the linked images are too large together, and fetches no more', async () => {
    let fetched = 0;
    const download = async () => {
      fetched++;
      const chunks = Array.from({ length: 50 }, () => Buffer.alloc(megabyte, '\x89PNG\r\n\x1a\n', 'latin1'));
      return { content: Readable.from(chunks, { objectMode: false }), type: 'image/png' };
    };
    for (const wanted of ['b64_json', 'url'] as const) {
      fetched = 0;
      const delivery = new ImageDelivery(callOf({}), wanted, download);
      const links = Array.from({ length: 100 }, (_, index) => `https://vendor.example/${index}.png`);
      await assert.rejects(deliverLinks(links, delivery, undefined), error);
      assert.equal(fetched, 3);
    }
    assert.equal((await stored()).length, 2, 'the one that was too large is not stored');
  });

  it('executeEmbedding fails once the embeddings of many calls are too large together, and makes no more calls', async () => {
    let calls = 0;
    const embed: NonNullable<Vendor['embed']> = async () => {
      calls++;
      return { vectors: [`[${'1'.repeat(60 * megabyte)}]`], usage: null };
    };
    const row = madeUpModel({ id: 'numbers', capability: 'embedding', embedding: { batch: 1 } } as never);
    const call = callOf({ input: Array.from({ length: 100 }, () => 'text'), encoding_format: 'float' });
    const vendor = { name: 'v', embed, close: async () => undefined };
    await assert.rejects(executeEmbedding({ vendor, row, endpoint: 'embeddings', keep: false, call, sink }), error);
    assert.ok(calls < 12, `${calls} calls`);
  });
});

describe('Slots', () => {
  it('Slots runs a limited number at a time and the others in order, also after a failure', async () => {
    const slots = new Slots(2);
    const started: number[] = [];
    const ends: (() => void)[] = [];
    const runs = Array.from({ length: 5 }, (_, index) =>
      slots.run(async () => {
        started.push(index);
        await new Promise<void>((resolve) => ends.push(resolve));
        if (index === 0) throw new Error('it broke');
      }),
    );
    for (const run of runs) run.catch(() => undefined);
    const turn = () => new Promise((resolve) => setImmediate(resolve));
    for (let ended = 0; ended < 5; ended++) {
      await turn();
      assert.deepEqual(
        started,
        Array.from({ length: Math.min(5, ended + 2) }, (_, index) => index),
      );
      ends[ended]?.();
    }
    const outcomes = await Promise.allSettled(runs);
    assert.deepEqual(
      outcomes.map(({ status }) => status),
      ['rejected', 'fulfilled', 'fulfilled', 'fulfilled', 'fulfilled'],
    );
  });
});
