import { readFile, writeFile } from 'node:fs/promises';

/** The secret in a file; if missing, creates a secret and the file, readable by its owner only. */
export async function secretOfFile(
  file: string,
  make: () => string,
): Promise<{ readonly text: string; readonly isNew: boolean }> {
  const kept = await readSecretFile(file);
  if (kept !== undefined) return { text: kept, isNew: false };
  const text = make();
  await writeFile(file, `${text}\n`, { mode: 0o600 });
  return { text, isNew: true };
}

async function readSecretFile(file: string): Promise<string | undefined> {
  try {
    return (await readFile(file, 'utf8')).trim() || undefined;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
