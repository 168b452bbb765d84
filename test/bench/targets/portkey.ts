import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { endChild, freePort, projectRoot, startChild, untilReady } from '../children.ts';
import type { TargetKind } from './target.ts';

const manifest = {
  private: true,
  dependencies: { '@portkey-ai/gateway': '1.15.2' },
  // What it resolves to by itself answers 500 to every stream.
  overrides: { '@hono/node-server': '1.13.8' },
};
const cacheDirectory = join(projectRoot, 'node_modules', '.cache', 'sluice-bench', 'portkey');

/** Portkey's gateway from npm, installed on first use into a cache folder: it is no dependency of ours. */
export const portkey: TargetKind = {
  name: 'portkey',
  start: async (options) => {
    await install();
    const port = await freePort();
    const script = join(cacheDirectory, 'node_modules', '@portkey-ai', 'gateway', 'build', 'start-server.js');
    const child = startChild('portkey', [process.execPath, script, '--headless', `--port=${port}`], {
      logFile: join(options.directory, 'portkey.log'),
    });
    await untilReady(child, 20_000, async () => {
      await fetch(`http://127.0.0.1:${port}/`);
    });
    return {
      name: 'portkey',
      origin: `http://127.0.0.1:${port}`,
      headers: {
        'x-portkey-provider': 'openai',
        'x-portkey-custom-host': `${options.vendorOrigin}/v1`,
        authorization: 'Bearer bench',
      },
      processes: [child],
      close: () => endChild(child),
    };
  },
};

/** Installs beside the cache folder and moves it in place, so that an interrupted install is never used. */
async function install(): Promise<void> {
  if (existsSync(cacheDirectory)) return;
  const fresh = `${cacheDirectory}.${process.pid}`;
  await mkdir(fresh, { recursive: true });
  try {
    await writeFile(join(fresh, 'package.json'), JSON.stringify(manifest));
    console.log('installing @portkey-ai/gateway into node_modules/.cache (once)');
    await promisify(execFile)('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund'], {
      cwd: fresh,
      timeout: 180_000,
    });
    await rename(fresh, cacheDirectory);
  } finally {
    await rm(fresh, { recursive: true, force: true });
  }
}
