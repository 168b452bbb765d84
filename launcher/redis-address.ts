import { readFileSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { unusableFile } from '../shared/config/start-failure.ts';
import { codeOf } from '../shared/runtime/error-code.ts';

/** The address of a data folder's embedded Redis, for `npm run keys` and for the next start. */
export interface RedisAddress {
  /** Contains its password, hence the file's mode. */
  readonly url: string;
  readonly pid: number;
}

const fileOf = (dataDir: string): string => join(dataDir, 'redis.json');

/** Writes the address to the data folder, readable by its owner only. */
export async function writeRedisAddress(dataDir: string, { url, pid }: RedisAddress): Promise<void> {
  // An existing file would keep its mode.
  await rm(fileOf(dataDir), { force: true });
  await writeFile(fileOf(dataDir), `${JSON.stringify({ url, pid })}\n`, { mode: 0o600 }).catch((error) => {
    throw unusableFile(fileOf(dataDir), error);
  });
}

export async function removeRedisAddress(dataDir: string): Promise<void> {
  await rm(fileOf(dataDir), { force: true });
}

/** The stored address; undefined if it is missing or invalid, or its process is gone. */
export function readRedisAddress(dataDir: string): RedisAddress | undefined {
  try {
    const { url, pid } = JSON.parse(readFileSync(fileOf(dataDir), 'utf8')) as RedisAddress;
    if (typeof url !== 'string' || !Number.isInteger(pid)) return undefined;
    process.kill(pid, 0);
    return { url, pid };
  } catch (error) {
    // EPERM: the process belongs to another user, so the process id was reused.
    if (error instanceof SyntaxError || ['ENOENT', 'ESRCH', 'EPERM'].includes(codeOf(error) ?? '')) return undefined;
    throw unusableFile(fileOf(dataDir), error);
  }
}
