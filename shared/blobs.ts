import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { type BlobStorage, type ByteRange, MissingBlobError } from './blobs/blob-storage.ts';
import type { BucketSettings } from './blobs/bucket-settings.ts';
import { FolderStorage } from './blobs/folder-storage.ts';
import { Slots } from './slots.ts';

/** Hour in which a blob was made: blobs lie in a folder per hour, so that old ones go by the folder. */
const hourOf = (time: Date): string => time.toISOString().slice(0, 13).replace(/[-T]/g, '');

/** Blobs that one process writes at a time, out of its memory: a vendor can make frames faster than a disk takes them. */
const mostWrites = 64;

const hourPattern = /^\d{10}$/;
const idPattern = /^\d{10}\/[0-9a-f-]{36}(\.[a-z0-9]{1,5})?$/;

/**
 * Big bytes beside the jobs, never in them: requests over 64 KiB, media, result files, and frames over 64 KiB. In a bucket
 * where there is one, else in the data folder, which every process that shares a Redis must then share. What is not the
 * id of a blob is never looked for: it is missing.
 */
export class Blobs {
  readonly #storage: BlobStorage;
  readonly #writes = new Slots(mostWrites);

  private constructor(storage: BlobStorage) {
    this.#storage = storage;
  }

  /**
   * @param bucket where the blobs lie; undefined: in the data folder.
   * @throws ConfigError when the folder cannot be written, or the bucket cannot be used.
   */
  static async open(dataDir: string, bucket?: BucketSettings): Promise<Blobs> {
    if (bucket === undefined) return new Blobs(await FolderStorage.open(dataDir));
    // The SDK costs memory and time to load, and most processes never need it.
    const { BucketStorage } = await import('./blobs/bucket-storage.ts');
    return new Blobs(await BucketStorage.open(bucket, dataDir));
  }

  /** Names the place where the blobs lie, without secrets: processes with the same one read each other's blobs. */
  get identity(): string {
    return this.#storage.identity;
  }

  /** The place as an operator knows it, without secrets. */
  get location(): string {
    return this.#storage.location;
  }

  /** Stores bytes and answers the blob's id. */
  async put(content: string | Uint8Array): Promise<string> {
    const id = newId();
    await this.#writes.run(() => this.#storage.write(id, content));
    return id;
  }

  /** A blob's text. @throws MissingBlobError */
  async text(id: string): Promise<string> {
    return await this.#storage.readText(checked(id));
  }

  /**
   * Stores bytes as they come, never more in memory than the storage's next step takes, and answers the blob's id and
   * size. What a failed stream leaves behind goes.
   * @param options.extension ending of the id, for a file that people will see.
   */
  async putStream(
    content: Readable | AsyncIterable<Uint8Array>,
    options: { extension?: string | undefined } = {},
  ): Promise<{ id: string; bytes: number }> {
    const id = newId(options.extension);
    // It may fail before the storage begins to listen; the failure is still there when it does.
    if (content instanceof Readable) content.on('error', () => undefined);
    try {
      return { id, bytes: await this.#storage.writeStream(id, content) };
    } catch (error) {
      // The storage may have failed before it asked for the first chunk.
      if (content instanceof Readable) content.destroy();
      throw error;
    }
  }

  /**
   * Opens a blob, or a part of it, and answers how many bytes come. Whoever does reads it to its end or destroys it.
   * @param range must lie inside the blob.
   * @throws MissingBlobError
   */
  async read(id: string, range?: ByteRange): Promise<{ content: Readable; bytes: number }> {
    return await this.#storage.read(checked(id), range);
  }

  /** A blob's size in bytes. @throws MissingBlobError */
  async size(id: string): Promise<number> {
    return await this.#storage.size(checked(id));
  }

  /** Removes a blob; one that is gone already is no error. */
  async delete(id: string): Promise<void> {
    if (idPattern.test(id)) await this.#storage.remove(id);
  }

  /** Removes all blobs made more than `ms` ago, by the hour. Answers how many hours went. */
  async sweep(ms: number): Promise<number> {
    const oldest = hourOf(new Date(Date.now() - ms));
    const old = (await this.#storage.hours()).filter((hour) => hourPattern.test(hour) && hour < oldest);
    for (const hour of old) await this.#storage.removeHour(hour);
    return old.length;
  }

  /** Lets go of connections. */
  close(): void {
    this.#storage.close();
  }
}

function newId(extension?: string): string {
  return `${hourOf(new Date())}/${randomUUID()}${extension === undefined ? '' : `.${extension}`}`;
}

function checked(id: string): string {
  if (!idPattern.test(id)) throw new MissingBlobError();
  return id;
}
