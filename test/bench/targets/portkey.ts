import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { endChild, freePort, runToEnd, startChild, untilReady } from '../children.ts';
import { installerEnvironment, installOnce } from './install.ts';
import type { TargetKind } from './target.ts';

const version = '1.15.2';
const manifest = {
  private: true,
  dependencies: { '@portkey-ai/gateway': version },
  // What it resolves to by itself answers 500 to every stream.
  overrides: { '@hono/node-server': '1.13.8' },
};

/** Portkey's gateway from npm. */
export const portkey: TargetKind = {
  name: 'portkey',
  description: `@portkey-ai/gateway ${version}`,
  start: async (options) => {
    const folder = await installOnce('portkey', version, (fresh) => install(fresh, options.directory));
    const port = await freePort();
    const script = join(folder, 'node_modules', '@portkey-ai', 'gateway', 'build', 'start-server.js');
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

async function install(folder: string, logDirectory: string): Promise<void> {
  await writeFile(join(folder, 'package.json'), JSON.stringify(manifest));
  const command = ['npm', 'install', '--ignore-scripts', '--no-audit', '--no-fund'];
  const logFile = join(logDirectory, 'install.log');
  await runToEnd('npm install', command, { directory: folder, environment: installerEnvironment, logFile }, 180_000);
}
