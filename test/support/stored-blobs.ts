import { readdir } from 'node:fs/promises';
import { join } from 'node:path';

/** Names of the blobs on disk in a gateway's data folder: uploads, requests and results that are there now. */
export async function storedBlobs(dataDir: string): Promise<string[]> {
  const entries = await readdir(join(dataDir, 'blobs'), { recursive: true, withFileTypes: true });
  // They lie in a folder per hour; beside those folders lies what the store keeps about itself.
  return entries.filter((entry) => entry.isFile() && /[\\/]\d{10}$/.test(entry.parentPath)).map(({ name }) => name);
}
