import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { readdir, readlink } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { buffer, text } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { MissingBlobError } from '../../../../shared/blobs/blob-storage.ts';
import type { AccountBlobs, Blobs } from '../../../../shared/blobs/blobs.ts';
import { eventually } from '../../../support/eventually.ts';

/** One kind of storage, opened for a suite. */
export interface OpenedBlobs {
  readonly blobs: Blobs;
  /** Makes a blob with this id, past the storage. */
  place(id: string, content: string): Promise<void>;
  /** Folders on this machine in which nothing may stay behind of content that failed. */
  readonly folders: readonly string[];
  close(): Promise<void>;
}

const hourMs = 3_600_000;

/** Paths of this process's open files. */
async function openFiles(): Promise<string[]> {
  const names = await readdir('/proc/self/fd');
  return await Promise.all(names.map((name) => readlink(`/proc/self/fd/${name}`).catch(() => '')));
}

/** What every kind of blob storage does alike. */
export function describeBlobs(name: string, open: () => Promise<OpenedBlobs>): void {
  describe(`Blobs in ${name}`, () => {
    let opened: OpenedBlobs;
    let blobs: AccountBlobs;

    before(async () => {
      opened = await open();
      blobs = opened.blobs.ofRecords('own');
    });
    after(() => opened?.close());

    async function filesLeft(): Promise<string[]> {
      const lists = await Promise.all(
        opened.folders.map((folder) => readdir(folder, { recursive: true, withFileTypes: true })),
      );
      return lists.flat().flatMap((entry) => (entry.isFile() ? [entry.name] : []));
    }

    /** No file of the storage is open once what was closed has been closed. */
    async function assertNothingOpen(): Promise<void> {
      await eventually(async () => {
        const open = (await openFiles()).filter((path) => opened.folders.some((folder) => path.startsWith(folder)));
        assert.deepEqual(open, []);
      });
    }

    /** A blob of that time. */
    async function putAt(time: number, content: string): Promise<string> {
      const hour = new Date(time).toISOString().slice(0, 13).replace(/[-T]/g, '');
      const id = `${hour}/${randomUUID()}`;
      await opened.place(id, content);
      return id;
    }

    test('Blobs keeps text, and bytes in parts, unchanged', async () => {
      const words = 'Grüße, 世界 🌊';
      assert.equal(await blobs.text(await blobs.put(words)), words);
      const bytes = Buffer.from(Array.from({ length: 1000 }, (_, index) => index % 256));
      const { content, bytes: size } = await blobs.read(
        await blobs.put([bytes.subarray(0, 300), bytes.subarray(300, 300), bytes.subarray(300)]),
      );
      assert.deepEqual(await buffer(content), bytes);
      assert.equal(size, 1000);
    });

    test('Blobs stores a stream of many chunks and returns its size', async () => {
      const chunks = Array.from({ length: 100 }, (_, index) => Buffer.alloc(50_000, index));
      const { id, bytes } = await blobs.putStream(Readable.from(chunks), { extension: 'png' });
      assert.match(id, /^\d{10}\/[0-9a-f-]{36}\.png$/);
      assert.equal(bytes, 5_000_000);
      assert.equal(await blobs.size(id), 5_000_000);
      assert.deepEqual(await buffer((await blobs.read(id)).content), Buffer.concat(chunks));
      await assertNothingOpen();
    });

    test('Blobs stores an empty stream', async () => {
      const { id, bytes } = await blobs.putStream(Readable.from([]));
      assert.equal(bytes, 0);
      assert.equal(await blobs.size(id), 0);
      const { content, bytes: size } = await blobs.read(id);
      assert.equal(await text(content), '');
      assert.equal(size, 0);
      assert.equal(await blobs.text(id), '');
    });

    test('Blobs reads a part of a blob', async () => {
      const id = await blobs.put('0123456789');
      for (const [first, last, part] of [
        [0, 1, '01'],
        [3, 5, '345'],
        [7, 9, '789'],
        [0, 9, '0123456789'],
      ] as const) {
        const { content, bytes } = await blobs.read(id, { first, last });
        assert.equal(bytes, part.length);
        assert.equal(await text(content), part);
      }
    });

    test('Blobs reads a part of a blob, and none of a blob of another account', async () => {
      const id = await blobs.put('0123456789');
      assert.equal(String(await blobs.part(id, { first: 0, last: 2 })), '012');
      assert.equal(String(await blobs.part(id, { first: 3, last: 9 })), '3456789');
      assert.equal(String(await blobs.part(id, { first: 8, last: 20 })), '89');
      await assert.rejects(opened.blobs.of('other').part(id, { first: 0, last: 2 }), MissingBlobError);
    });

    test('Blobs deletes a blob, and then finds nothing', async () => {
      const id = await blobs.put('gone');
      await blobs.delete(id);
      await blobs.delete(id);
      await assert.rejects(blobs.text(id), MissingBlobError);
      await assert.rejects(blobs.read(id), MissingBlobError);
      await assert.rejects(blobs.read(id, { first: 0, last: 1 }), MissingBlobError);
      await assert.rejects(blobs.part(id, { first: 0, last: 1 }), MissingBlobError);
      await assert.rejects(blobs.size(id), MissingBlobError);
    });

    test('Blobs deletes many blobs, some of which are gone, and none of another account', async () => {
      const others = await opened.blobs.of('other').put('kept');
      const ids = await Promise.all(Array.from({ length: 5 }, (_, index) => blobs.put(`blob ${index}`)));
      const [kept = '', ...deleted] = ids;
      await blobs.delete(deleted[0] as string);
      const more = await opened.blobs.of('third').put('gone, too');
      const named = new Map([
        ['own', [...deleted, others, '..', '']],
        ['third', [more, kept]],
      ]);
      await opened.blobs.deleteAll(named);
      await assert.rejects(opened.blobs.of('third').text(more), MissingBlobError);
      for (const id of deleted) await assert.rejects(blobs.text(id), MissingBlobError);
      assert.equal(await blobs.text(kept), 'blob 0');
      assert.equal(await opened.blobs.of('other').text(others), 'kept');
      await opened.blobs.deleteAll(new Map());
    });

    test('Blobs looks for nothing that is not the id of a blob', async () => {
      const id = await blobs.put('here');
      for (const wrong of [
        '',
        '..',
        '../../etc/passwd',
        `../blobs/${id}`,
        `${id}/..`,
        'identity',
        `${id}\0`,
        `/${id}`,
      ]) {
        await assert.rejects(blobs.text(wrong), MissingBlobError, wrong);
        await assert.rejects(blobs.read(wrong), MissingBlobError, wrong);
        await assert.rejects(blobs.size(wrong), MissingBlobError, wrong);
        await blobs.delete(wrong);
      }
      assert.equal(await blobs.text(id), 'here');
    });

    test('Blobs lets no other account read or delete a blob', async () => {
      const own = opened.blobs.of('own');
      const id = await own.put('mine');
      const { id: file } = await own.putStream(Readable.from([Buffer.from('mine')]), { extension: 'png' });
      for (const others of [opened.blobs.of('other'), opened.blobs.ofRecords('other'), opened.blobs.of('')]) {
        for (const named of [id, file]) {
          await assert.rejects(others.text(named), MissingBlobError);
          await assert.rejects(others.read(named), MissingBlobError);
          await assert.rejects(others.size(named), MissingBlobError);
          await others.delete(named);
          assert.equal(await own.text(named), 'mine');
        }
      }
    });

    test("Blobs of the previous release, which carry no account, are found for the gateway's own records alone", async () => {
      const id = await putAt(Date.now(), 'old');
      await assert.rejects(opened.blobs.of('own').text(id), MissingBlobError);
      await opened.blobs.of('own').delete(id);
      assert.equal(await opened.blobs.ofRecords('own').text(id), 'old');
      assert.equal(await text((await opened.blobs.signed.read(id)).content), 'old');
      await opened.blobs.ofRecords('own').delete(id);
      await assert.rejects(opened.blobs.signed.size(id), MissingBlobError);
    });

    test('Blobs makes ids that the previous release can read', async () => {
      assert.match(await opened.blobs.of('own').put(''), /^\d{10}\/[0-9a-f-]{36}(\.[a-z0-9]{1,5})?$/);
    });

    test('Blobs keeps nothing of a stream that fails, and ends the stream', async () => {
      const before = await filesLeft();
      const broken = new Readable({ read: () => undefined });
      const stored = blobs.putStream(broken);
      broken.push(Buffer.alloc(100_000));
      for (let turn = 0; turn < 5; turn++) await nextTurn();
      broken.destroy(new Error('the sender is gone'));
      await assert.rejects(stored, /the sender is gone/);
      const neverStarted = new Readable({ read: () => undefined });
      const refused = blobs.putStream(neverStarted);
      neverStarted.destroy(new Error('at once'));
      await assert.rejects(refused, /at once/);
      const cut = new Readable({ read: () => undefined });
      const unfinished = blobs.putStream(cut);
      cut.destroy();
      await assert.rejects(unfinished);
      assert.deepEqual(await filesLeft(), before);
      await assertNothingOpen();
    });

    test('Blobs reads no more from a stream than it has written', async () => {
      let asked = 0;
      let end = (): void => undefined;
      const wait = new Promise<void>((resolve) => {
        end = resolve;
      });
      async function* slow(): AsyncGenerator<Buffer> {
        for (; asked < 3; asked++) yield Buffer.alloc(10_000);
        await wait;
      }
      const stored = blobs.putStream(slow());
      await eventually(() => assert.equal(asked, 3));
      end();
      assert.equal((await stored).bytes, 30_000);
    });

    test('Blobs closes what a reader abandons in the middle', async () => {
      const { id } = await blobs.putStream(Readable.from([Buffer.alloc(3_000_000)]));
      for (let round = 0; round < 5; round++) {
        const { content } = await blobs.read(id);
        if (round > 0) for await (const _ of content) break;
        content.destroy();
      }
      await assertNothingOpen();
    });

    test('Blobs sweeps blobs by the hour of their creation, and keeps newer ones', async () => {
      const now = Date.now();
      const old = await putAt(now - 5 * hourMs, 'old');
      const older: string[] = [];
      for (let count = 0; count < 3; count++) older.push(await putAt(now - 50 * hourMs, 'older'));
      const young = await putAt(now - 2 * hourMs, 'young');
      const fresh = await blobs.put('fresh');
      assert.equal(await opened.blobs.sweep(3 * hourMs), 2);
      for (const id of [old, ...older]) await assert.rejects(blobs.text(id), MissingBlobError);
      assert.equal(await blobs.text(young), 'young');
      assert.equal(await blobs.text(fresh), 'fresh');
      assert.equal(await opened.blobs.sweep(3 * hourMs), 0);
    });

    test('Blobs stays readable to a reader who started before the sweep', async () => {
      const id = await putAt(Date.now() - 5 * hourMs, 'x'.repeat(200_000));
      const { content } = await blobs.read(id);
      await opened.blobs.sweep(3 * hourMs);
      assert.equal((await text(content)).length, 200_000);
    });
  });
}
