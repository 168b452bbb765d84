import { createRequire } from 'node:module';

/** The version of this build: its package's, which lies three folders up from the built file and two from the source. */
export const version = readVersion();

function readVersion(): string {
  const require = createRequire(import.meta.url);
  for (const path of ['../../package.json', '../../../package.json']) {
    try {
      return (require(path) as { version: string }).version;
    } catch {}
  }
  return 'unknown';
}
