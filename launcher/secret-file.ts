import { readFile, rm, writeFile } from 'node:fs/promises';
import { unusableFile } from '../shared/config/start-failure.ts';
import { codeOf } from '../shared/runtime/error-code.ts';

/**
 * The secret in a file; if missing, creates a secret and the file, readable by its owner only.
 * @throws ConfigError when the file can be neither read nor made.
 */
export async function secretOfFile(
  file: string,
  make: () => string,
): Promise<{ readonly text: string; readonly isNew: boolean }> {
  const kept = await readSecretFile(file);
  if (kept !== undefined) return { text: kept, isNew: false };
  const text = make();
  try {
    await writeFile(file, `${text}\n`, { mode: 0o600 });
  } catch (error) {
    // On a full disk: the next start must not take a part of a secret for one.
    await rm(file, { force: true }).catch(() => undefined);
    throw unusableFile(file, error);
  }
  return { text, isNew: true };
}

/** The secret in a file; undefined if there is none. @throws ConfigError when the file cannot be read. */
export async function readSecretFile(file: string): Promise<string | undefined> {
  try {
    return (await readFile(file, 'utf8')).trim() || undefined;
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw unusableFile(file, error);
  }
}
