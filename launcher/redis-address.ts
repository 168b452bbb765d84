import { readFileSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Where the embedded Redis of a data folder is, for `npm run keys` and for the next start. */
export interface RedisAddress {
  /** With its password, hence the file's mode. */
  readonly url: string;
  readonly pid: number;
}

const fileOf = (dataDir: string): string => join(dataDir, 'redis.json');

/** Leaves the address in the data folder, readable by its owner only. */
export async function writeRedisAddress(dataDir: string, { url, pid }: RedisAddress): Promise<void> {
  // A file that exists would keep its mode.
  await rm(fileOf(dataDir), { force: true });
  await writeFile(fileOf(dataDir), `${JSON.stringify({ url, pid })}\n`, { mode: 0o600 });
}

export async function removeRedisAddress(dataDir: string): Promise<void> {
  await rm(fileOf(dataDir), { force: true });
}

/** The address that was left; undefined when there is none, it is no address, or its process is gone. */
export function readRedisAddress(dataDir: string): RedisAddress | undefined {
  try {
    const { url, pid } = JSON.parse(readFileSync(fileOf(dataDir), 'utf8')) as RedisAddress;
    if (typeof url !== 'string' || !Number.isInteger(pid)) return undefined;
    process.kill(pid, 0);
    return { url, pid };
  } catch (error) {
    // EPERM: the process is there, but somebody else's, so a number used again.
    if (
      error instanceof SyntaxError ||
      ['ENOENT', 'ESRCH', 'EPERM'].includes((error as NodeJS.ErrnoException).code ?? '')
    ) {
      return undefined;
    }
    throw error;
  }
}
