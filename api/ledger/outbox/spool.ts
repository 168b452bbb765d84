import { randomUUID } from 'node:crypto';
import { mkdir, open, readdir, readFile, rename, stat, statfs, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { codeOf } from '../../../shared/runtime/error-code.ts';
import type { Logger } from '../../../shared/runtime/log.ts';

/** `<ms since 1970>-<random>.<records>.jsonl`: sorted by name, files are in order of creation. */
const fileName = /^\d{15}-[0-9a-f-]{36}\.(\d+)\.jsonl$/;
/** File with the spool's name in Redis. */
const nameFile = 'name';
/** Age at which an unfinished file of a dead process is removed. */
const unfinishedMs = 3_600_000;

export interface SpoolOptions {
  readonly folder: string;
  /** Maximum bytes of its files together. */
  readonly maxBytes: number;
  /** Minimum free bytes of the disk. */
  readonly minFreeBytes: number;
  readonly log: Logger;
}

interface SpoolFile {
  readonly name: string;
  readonly records: number;
  readonly bytes: number;
}

/**
 * Lines of text that wait on disk for the database. Each file is written once, synced, and removed once the database has all
 * its lines. Lines survive a crash once `add` has returned; before that they may or may not exist.
 */
export class Spool {
  /** Identifies the spool across processes: the next one on the same folder has the same name. */
  readonly name: string;
  readonly #options: SpoolOptions;
  #files: SpoolFile[];
  /** Files that this process cannot read. */
  readonly #kept = new Set<string>();

  private constructor(options: SpoolOptions, name: string, files: SpoolFile[]) {
    this.#options = options;
    this.name = name;
    this.#files = files;
  }

  /** Opens the spool and loads files of earlier processes. The folder's parent must exist. */
  static async open(options: SpoolOptions): Promise<Spool> {
    const { folder } = options;
    await mkdir(folder, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
    const files: SpoolFile[] = [];
    for (const name of (await readdir(folder)).sort()) {
      const path = join(folder, name);
      const records = Number(fileName.exec(name)?.[1] ?? Number.NaN);
      const facts = await stat(path).catch(() => undefined);
      if (facts === undefined) continue;
      if (!Number.isNaN(records)) files.push({ name, records, bytes: facts.size });
      else if (name.endsWith('.tmp') && Date.now() - facts.mtimeMs > unfinishedMs)
        await unlink(path).catch(() => undefined);
    }
    return new Spool(options, await readName(folder), files);
  }

  get records(): number {
    return this.#files.reduce((sum, { records }) => sum + records, 0);
  }

  get bytes(): number {
    return this.#files.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  /** Whether bytes fit, within the spool's limit and on the disk. */
  async hasRoom(bytes: number): Promise<boolean> {
    const { folder, maxBytes, minFreeBytes } = this.#options;
    if (this.bytes + bytes > maxBytes) return false;
    const { bavail, bsize } = await statfs(folder);
    return bavail * bsize - bytes > minFreeBytes;
  }

  /** Writes lines, which are on disk when it returns. @throws if the disk refuses them: then none count. */
  async add(lines: readonly string[]): Promise<void> {
    const { folder } = this.#options;
    const name = `${String(Date.now()).padStart(15, '0')}-${randomUUID()}.${lines.length}.jsonl`;
    const unfinished = join(folder, `${name}.tmp`);
    const data = Buffer.from(`${lines.join('\n')}\n`);
    try {
      const file = await open(unfinished, 'wx', 0o600);
      try {
        await file.writeFile(data);
        await file.sync();
      } finally {
        await file.close();
      }
      await rename(unfinished, join(folder, name));
      await syncFolder(folder);
    } catch (error) {
      await unlink(unfinished).catch(() => undefined);
      throw error;
    }
    this.#files.push({ name, records: lines.length, bytes: data.length });
  }

  /** Leaves a file where it is, for a later process that can read it; it still counts. */
  keep(name: string): void {
    this.#kept.add(name);
  }

  /** Returns the lines of the oldest file, or undefined if there is none. `remove` is called once they are written. */
  async oldest(): Promise<
    { readonly name: string; readonly lines: string[]; readonly remove: () => Promise<void> } | undefined
  > {
    const next = (): SpoolFile | undefined => this.#files.find(({ name }) => !this.#kept.has(name));
    for (let first = next(); first !== undefined; first = next()) {
      const { name } = first;
      const path = join(this.#options.folder, name);
      try {
        const text = await readFile(path, 'utf8');
        return { name, lines: text.split('\n').filter(Boolean), remove: () => this.#remove(name) };
      } catch (error) {
        if (codeOf(error) !== 'ENOENT') throw error;
        // Another process on the same folder has written its lines.
        this.#files = this.#files.filter((file) => file.name !== name);
      }
    }
    return undefined;
  }

  async #remove(name: string): Promise<void> {
    await unlink(join(this.#options.folder, name)).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error;
    });
    this.#files = this.#files.filter((file) => file.name !== name);
  }
}

/** A file's name is durable only once its folder is synced. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function readName(folder: string): Promise<string> {
  const path = join(folder, nameFile);
  try {
    const file = await open(path, 'wx', 0o600);
    try {
      const name = randomUUID();
      await file.writeFile(name);
      return name;
    } finally {
      await file.close();
    }
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
    return (await readFile(path, 'utf8')) || 'unnamed';
  }
}
