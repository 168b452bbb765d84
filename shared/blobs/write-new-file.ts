import { open, rm, writeFile } from 'node:fs/promises';

/**
 * Writes bytes to a new file at the disk's pace: the next chunk is requested when the last is written. Returns the number of
 * bytes. Removes the file if the content fails.
 * @param isSynced whether its bytes are on the disk when it returns
 */
export async function writeNewFile(
  path: string,
  content: AsyncIterable<Uint8Array>,
  isSynced = false,
): Promise<number> {
  let bytes = 0;
  async function* counted(): AsyncGenerator<Uint8Array> {
    for await (const chunk of content) {
      bytes += chunk.length;
      yield chunk;
    }
  }
  const file = await open(path, 'wx', 0o600);
  try {
    await writeFile(file, counted());
    if (isSynced) await file.sync();
    await file.close();
  } catch (error) {
    await file.close().catch(() => undefined);
    await rm(path, { force: true });
    throw error;
  }
  return bytes;
}
