import { randomUUID } from 'node:crypto';
import * as fs from 'node:fs';
import {
  access,
  constants,
  link,
  mkdir,
  open,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  unlink,
  writeFile,
} from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Readable } from 'node:stream';
import { promisify } from 'node:util';
import { unusableFile } from '../config/start-failure.ts';
import { codeOf } from '../runtime/error-code.ts';
import { type BlobStorage, BlobStorageError, type ByteRange, MissingBlobError } from './blob-storage.ts';
import { writeNewFile } from './write-new-file.ts';

/** What is read and written as a whole takes numbers of open files: objects of `fs/promises` would cost a seventh more. */
const [openNumber, statOpen, closeNumber] = [promisify(fs.open), promisify(fs.fstat), promisify(fs.close)];
const [readInto, writeParts, writeRest] = [promisify(fs.read), promisify(fs.writev), promisify(fs.writeFile)];

/** Name of the file that identifies a blob folder, whatever path it is mounted under. */
const identityFile = 'identity';

/** Ends the name of a file for good that is not whole yet, and the age (ms) from which one was left behind by a killed process. */
const unfinished = '.tmp';
const abandonedMs = 3_600_000;

/** Blobs in a folder of the data folder, which all processes that share a Redis must share. */
export class FolderStorage implements BlobStorage {
  readonly identity: string;
  readonly location: string;

  private constructor(folder: string, identity: string) {
    this.location = folder;
    this.identity = `folder ${identity}`;
  }

  /**
   * Opens the folder.
   * @throws ConfigError when the folder cannot be written.
   */
  static async open(dataDir: string): Promise<FolderStorage> {
    const folder = join(dataDir, 'blobs');
    try {
      await mkdir(folder, { recursive: true });
      await access(folder, constants.W_OK);
      return new FolderStorage(folder, await readIdentity(folder));
    } catch (error) {
      throw unusableFile(`The data folder ${dataDir}`, error);
    }
  }

  /** Removes the partial file if the write fails, as on a full disk. */
  async write(id: string, content: string | readonly Uint8Array[]): Promise<void> {
    const path = join(this.location, id);
    try {
      await writeWhole(path, content).catch(async (error: NodeJS.ErrnoException) => {
        // The first of its hour.
        if (error.code !== 'ENOENT') throw error;
        await mkdir(dirname(path), { recursive: true });
        await writeWhole(path, content);
      });
    } catch (error) {
      await rm(path, { force: true }).catch(() => undefined);
      throw error;
    }
  }

  async writeStream(id: string, content: AsyncIterable<Uint8Array>, isForGood = false): Promise<number> {
    const path = join(this.location, id);
    await mkdir(dirname(path), { recursive: true });
    return isForGood ? await this.#writeForGood(path, content) : await writeNewFile(path, content);
  }

  /** The file has its name once it is whole: nobody looks for the rest of one whose process was killed. */
  async #writeForGood(path: string, content: AsyncIterable<Uint8Array>): Promise<number> {
    const folder = dirname(path);
    await removeAbandoned(folder);
    const bytes = await writeNewFile(`${path}${unfinished}`, content, true);
    await rename(`${path}${unfinished}`, path);
    // A file's name is durable once its folder is, and so on.
    for (const each of [folder, this.location]) await syncFolder(each);
    return bytes;
  }

  async readBytes(id: string, size?: number): Promise<Buffer> {
    const file = await orMissing(openNumber(join(this.location, id), 'r'));
    try {
      return await readWhole(file, size ?? (await statOpen(file)).size);
    } finally {
      await closeNumber(file);
    }
  }

  async readPart(id: string, { first, last }: ByteRange): Promise<Buffer> {
    const file = await orMissing(openNumber(join(this.location, id), 'r'));
    try {
      return await readWhole(file, last - first + 1, first);
    } finally {
      await closeNumber(file);
    }
  }

  async read(id: string, range?: ByteRange): Promise<{ content: Readable; bytes: number }> {
    // Opened before measuring: a file deleted meanwhile stays readable.
    const file = await orMissing(open(join(this.location, id)));
    try {
      const bytes = range === undefined ? (await file.stat()).size : range.last - range.first + 1;
      const part = range === undefined ? {} : { start: range.first, end: range.last };
      return { content: file.createReadStream(part), bytes };
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  async size(id: string): Promise<number> {
    return (await orMissing(stat(join(this.location, id)))).size;
  }

  async remove(id: string): Promise<void> {
    await unlink(join(this.location, id)).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error;
    });
  }

  async removeAll(ids: readonly string[]): Promise<void> {
    // One at a time: nobody waits for it, and others need the thread pool.
    try {
      for (const id of ids) await this.remove(id);
    } catch (error) {
      throw new BlobStorageError(error);
    }
  }

  async hours(): Promise<string[]> {
    return await readdir(this.location);
  }

  async removeHour(hour: string): Promise<void> {
    await rm(join(this.location, hour), { recursive: true, force: true });
  }

  close(): void {}
}

/** Removes what killed processes have left unfinished in a folder. */
async function removeAbandoned(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    if (!name.endsWith(unfinished)) continue;
    const path = join(folder, name);
    const written = await stat(path).catch(() => undefined);
    if (written !== undefined && written.mtimeMs < Date.now() - abandonedMs) await rm(path, { force: true });
  }
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path);
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/** Reads a file, or a part of it, in one step of the thread pool, where `readFile` takes one for each half of a mebibyte. */
async function readWhole(file: number, size: number, first = 0): Promise<Buffer> {
  const content = Buffer.allocUnsafeSlow(size);
  let read = 0;
  while (read < content.length) {
    const { bytesRead } = await readInto(file, content, read, content.length - read, first + read);
    if (bytesRead === 0) break;
    read += bytesRead;
  }
  return read < content.length ? content.subarray(0, read) : content;
}

/** Writes a file; parts in one system call, which may be short on a full disk. */
async function writeWhole(path: string, content: string | readonly Uint8Array[]): Promise<void> {
  if (typeof content === 'string') return await writeFile(path, content);
  const file = await openNumber(path, 'w');
  try {
    const { bytesWritten } = await writeParts(file, content);
    const whole = content.reduce((bytes, part) => bytes + part.byteLength, 0);
    if (bytesWritten < whole) await writeRest(file, Buffer.concat(content).subarray(bytesWritten));
  } finally {
    await closeNumber(file);
  }
}

/** The folder's identity, created by the first process that asks; others, possibly starting at the same moment, read it. */
async function readIdentity(folder: string): Promise<string> {
  const path = join(folder, identityFile);
  const draft = join(folder, `${identityFile}-${randomUUID()}`);
  await writeFile(draft, randomUUID());
  try {
    // A link is created atomically, and never replaces an existing one.
    await link(draft, path);
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
  } finally {
    await rm(draft);
  }
  return await readFile(path, 'utf8');
}

async function orMissing<T>(opened: Promise<T>): Promise<T> {
  try {
    return await opened;
  } catch (error) {
    throw codeOf(error) === 'ENOENT' ? new MissingBlobError() : new BlobStorageError(error);
  }
}
