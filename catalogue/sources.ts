import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** An npm package that is read, not run. It is not a dependency, so that its own dependencies are never installed. */
interface Source {
  readonly version: string;
  /** From the registry: `npm view <package>@<version> dist.integrity`. */
  readonly integrity: string;
}

/** Sources of the catalogue. To update one, set its version and integrity here, then run `npm run catalogue`. */
export const sources = {
  /** Chat models of the large vendors: limits, prices, kinds of input. Its lists are JSON files. */
  '@earendil-works/pi-ai': {
    version: '1.5.2',
    integrity: 'sha512-2tWPSnV3qzfiDIY3aWluBag3vC++Vs+VsXt/UquSU5onPMohPih72FUhIhaqmDdMYubOgB3Byl9uF4Vk40JLvQ==',
  },
  /** Prices, including those of images and audio. */
  '@pydantic/genai-prices': {
    version: '0.1.8',
    integrity: 'sha512-h7CYw6qTyflG2zUndO8tXyL8Xopf+tX9JZu13h0ZFgeyYj+J2gm1edR4+R+mbQ2vPdkFjtTmmmu1cYQPM5/KTA==',
  },
  /** Names of current models of images, videos, speech and transcription; the packages below list the same. */
  '@ai-sdk/gateway': {
    version: '4.0.146',
    integrity: 'sha512-rJ5NQSyjnpo6HSBEYc9Ff6k1EROUuB7KeAfHYVbVDsk68ynY0Eb8JeWflZKXlT6NhYgqyCiBDxE5blXWACXMKQ==',
  },
  '@ai-sdk/google': {
    version: '3.0.141',
    integrity: 'sha512-eBz4HuHTppQu3Hk5L/PN1YipKr7WsRfPNKuaqCcFvNFP9GcqehGIRp5VGXYq8Qh6LTzsE0eEtC8lkwbTiDFj3w==',
  },
  '@ai-sdk/fal': {
    version: '2.0.59',
    integrity: 'sha512-IX0UhzeB3AEhwzT5EG+/xp2nl1n5el9ht4G9yucJLbmSLi4EO5qjkTNgTcKp/QKMZyRcQiwk56j05ZLsSKzu7w==',
  },
  '@ai-sdk/replicate': {
    version: '2.0.57',
    integrity: 'sha512-ewRt7Vw/nhsn2TzlHvztx8fuM8diEn5oyuH2Seaqot4pa52WIJdyNFgs0ce6IVdIRUWzb2yx6IYz3GlgoFOXPg==',
  },
  '@ai-sdk/deepgram': {
    version: '2.0.58',
    integrity: 'sha512-EWcos5PJGvQysONWCG5+hVRjKGfSVZDF9jdPaZNojJH3HXU3xynCZm3OxKCI1cX2HC/99ze/hikklJV02wMRag==',
  },
  '@ai-sdk/elevenlabs': {
    version: '2.0.58',
    integrity: 'sha512-uUAgKAPHORj0oDcFaRaJoGl7UxS0JUYaWshHT2zyh/C2bAwHz8WUVVGUiuFv3VKp9HDwjICQaYPLMVxzQiy2cw==',
  },
  '@ai-sdk/assemblyai': {
    version: '2.0.58',
    integrity: 'sha512-Y/p24gv5T2Ew4Ctad0VWVqNecyzJqIFDxgXacwcIb44P2wQCHnAsVRjtlxlyQcaDHroAMeX8ADe8HEBa2EpMtg==',
  },
} as const satisfies Record<string, Source>;

/** The name of a source. */
export type SourceName = keyof typeof sources;

const cache = fileURLToPath(new URL('../node_modules/.cache/sluice-catalogue/', import.meta.url));

/**
 * The folder of an unpacked source, fetched from the registry if missing.
 * @throws Error if the registry returns a package other than the pinned one.
 */
export function unpack(name: SourceName): string {
  const { version, integrity } = sources[name];
  const folder = join(cache, `${name.replace(/[@/]/g, '-').slice(1)}-${version}`);
  if (existsSync(folder)) return join(folder, 'package');
  mkdirSync(cache, { recursive: true });
  const fresh = mkdtempSync(join(cache, 'fetching-'));
  try {
    const options = ['--prefer-offline', '--silent', '--ignore-scripts', '--pack-destination', fresh];
    const packed = execFileSync('npm', ['pack', `${name}@${version}`, ...options], { encoding: 'utf8' }).trim();
    const archive = join(fresh, packed);
    const found = `sha512-${createHash('sha512').update(readFileSync(archive)).digest('base64')}`;
    if (found !== integrity) throw new Error(`${name}@${version} is not the package that is pinned: ${found}`);
    execFileSync('tar', ['-xzf', archive, '-C', fresh]);
    // In one step, so that an existing folder is complete.
    renameSync(fresh, folder);
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
  return join(folder, 'package');
}
