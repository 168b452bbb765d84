import { randomUUID } from 'node:crypto';
import { access, constants, mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { Disk } from 'flydrive';
import { FSDriver } from 'flydrive/drivers/fs';
import { ConfigError } from './config.ts';

/** Hour in which a blob was made: blobs lie in a folder per hour, so that old ones go by the folder. */
const hourOf = (time: Date): string => time.toISOString().slice(0, 13).replace(/[-T]/g, '');

const idPattern = /^\d{10}\/[0-9a-f-]{36}(\.[a-z0-9]{1,5})?$/;

/**
 * Big bytes beside the jobs, never in them: requests over 64 KiB, media, and frames over 64 KiB. On disk; every process
 * that shares a Redis must share the folder.
 */
export class Blobs {
  readonly #folder: string;
  readonly #disk: Disk;

  private constructor(folder: string) {
    this.#folder = folder;
    this.#disk = new Disk(new FSDriver({ location: folder, visibility: 'private' }));
  }

  /** @throws ConfigError when the folder cannot be written. */
  static async open(dataDir: string): Promise<Blobs> {
    const folder = join(dataDir, 'blobs');
    try {
      await mkdir(folder, { recursive: true });
      await access(folder, constants.W_OK);
    } catch (error) {
      throw new ConfigError(`The data folder ${dataDir} cannot be written (${(error as NodeJS.ErrnoException).code}).`);
    }
    return new Blobs(folder);
  }

  /** Stores bytes and answers the blob's id. */
  async put(content: string | Uint8Array): Promise<string> {
    const id = `${hourOf(new Date())}/${randomUUID()}`;
    await this.#disk.put(id, content);
    return id;
  }

  /** A blob's text. @throws Error when there is no such blob. */
  async text(id: string): Promise<string> {
    if (!idPattern.test(id)) throw new Error('not the id of a blob');
    return await this.#disk.get(id);
  }

  /**
   * Stores bytes as they come, and answers the blob's id and size. What a failed stream leaves behind goes.
   * @param options.extension ending of the id, for a file that people will see.
   */
  async putStream(
    content: Readable,
    options: { extension?: string | undefined } = {},
  ): Promise<{ id: string; bytes: number }> {
    const ending = options.extension === undefined ? '' : `.${options.extension}`;
    const id = `${hourOf(new Date())}/${randomUUID()}${ending}`;
    let bytes = 0;
    const count = new Transform({
      transform(chunk: Buffer, _encoding, done) {
        bytes += chunk.length;
        done(null, chunk);
      },
    });
    try {
      await Promise.all([pipeline(content, count), this.#disk.putStream(id, count)]);
    } catch (error) {
      await this.#disk.delete(id);
      throw error;
    }
    return { id, bytes };
  }

  /** Opens a blob. Whoever does reads it to its end or destroys it. @throws Error when there is no such blob. */
  async read(id: string): Promise<{ content: Readable; bytes: number }> {
    if (!idPattern.test(id)) throw new Error('not the id of a blob');
    const { contentLength } = await this.#disk.getMetaData(id);
    return { content: await this.#disk.getStream(id), bytes: contentLength };
  }

  /** Removes a blob; one that is gone already is no error. */
  async delete(id: string): Promise<void> {
    if (idPattern.test(id)) await this.#disk.delete(id);
  }

  /** Removes all blobs made more than `ms` ago, by the hour. Answers how many hours' folders went. */
  async sweep(ms: number): Promise<number> {
    const oldest = hourOf(new Date(Date.now() - ms));
    const old = (await readdir(this.#folder)).filter((hour) => /^\d{10}$/.test(hour) && hour < oldest);
    for (const hour of old) await rm(join(this.#folder, hour), { recursive: true, force: true });
    return old.length;
  }
}
