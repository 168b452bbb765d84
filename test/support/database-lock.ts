import { closeSync, openSync, readSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import Libsql from 'libsql';
import { databaseFile } from '../../shared/database/database.ts';

/** Length of the two copies of the header of SQLite's index of its write-ahead log (https://www.sqlite.org/walformat.html). */
const headerBytes = 96;
const takeMs = 60_000;

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

  private constructor(path: string, file: Libsql.Database) {
    this.#file = file;
    this.#index = openSync(`${path}-shm`, 'r+');
    readSync(this.#index, this.#header, 0, headerBytes, 0);
    writeSync(this.#index, Buffer.alloc(headerBytes), 0, headerBytes, 0);
  }

  /** @throws Error when others write for longer than a minute. Waits briefly at a time: SQLite holds up this process meanwhile. */
  static async take(dataDir: string): Promise<DatabaseLock> {
    const path = join(dataDir, databaseFile);
    const file = new Libsql(path, { timeout: 200 });
    const giveUpAt = Date.now() + takeMs;
    for (;;) {
      try {
        file.exec('BEGIN EXCLUSIVE');
        return new DatabaseLock(path, file);
      } catch (error) {
        if (!String(error).includes('database is locked') || Date.now() > giveUpAt) {
          file.close();
          throw error;
        }
        await delay(20);
      }
    }
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
