import { closeSync, openSync, readSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import Libsql from 'libsql';
import { databaseFile } from '../../shared/database/database.ts';

/** Length of the two copies of the header of SQLite's index of its write-ahead log (https://www.sqlite.org/walformat.html). */
const headerBytes = 96;

/**
 * Stops a gateway's database: until it is released no process can read or write in it, as if its disk hung. SQLite itself
 * lets nobody write who does not hold the write lock, which is here; and whoever finds the index of the write-ahead log
 * without a header waits for that lock before reading, so as to make the index again.
 */
export class DatabaseLock {
  readonly #file: Libsql.Database;
  readonly #index: number;
  readonly #header = Buffer.alloc(headerBytes);
  #isHeld = true;

  /** @throws Error when another process writes for longer than 30 s. */
  constructor(dataDir: string) {
    const path = join(dataDir, databaseFile);
    this.#file = new Libsql(path, { timeout: 30_000 });
    this.#file.exec('BEGIN EXCLUSIVE');
    this.#index = openSync(`${path}-shm`, 'r+');
    readSync(this.#index, this.#header, 0, headerBytes, 0);
    writeSync(this.#index, Buffer.alloc(headerBytes), 0, headerBytes, 0);
  }

  /** Lets the others go on where they were. May be called again. */
  release(): void {
    if (!this.#isHeld) return;
    this.#isHeld = false;
    writeSync(this.#index, this.#header, 0, headerBytes, 0);
    closeSync(this.#index);
    this.#file.exec('ROLLBACK');
    this.#file.close();
  }
}
