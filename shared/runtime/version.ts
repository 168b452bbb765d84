import { createRequire } from 'node:module';

/** The version of this build, from its package.json, which lies three folders above the built file and two above the source. */
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
