/**
 * `npm run dev`: same as `npm start`, but from source and without a build. A role restarts when its sources change; the
 * console is served by Vite, which shows changes at once.
 */
import { watch } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createServer } from 'vite';
import type { Launch } from './launch.ts';
import { runLauncher } from './run-launcher.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
/** Editors write a file in several steps, and several files at a time. */
const settleMs = 200;
/** Children to restart after a change in a folder. */
const readers = {
  api: ['api'],
  workers: ['worker'],
  sandbox: ['sandbox'],
  shared: ['api', 'worker'],
} as const;

await runLauncher(
  {
    // Nothing runs from dist/, so it may be built meanwhile.
    buildLock: join(root, 'no.lock'),
    api: join(root, 'api/main.ts'),
    worker: join(root, 'workers/main.ts'),
    sandbox: join(root, 'sandbox/main.ts'),
    nodeFlags: ['--import', import.meta.resolve('tsx')],
  },
  (launch, { baseUrl }) => {
    watchSources(launch);
    void serveConsole(new URL(baseUrl).origin);
  },
);

function watchSources(launch: Launch): void {
  const changed = new Set<string>();
  let timer: NodeJS.Timeout | undefined;
  const restart = async (): Promise<void> => {
    const names = [...changed];
    changed.clear();
    console.error(`Sources have changed, so these start again: ${names.join(', ')}.`);
    await Promise.all(names.map((name) => launch.restart(name)));
  };
  for (const [folder, names] of Object.entries(readers)) {
    watch(join(root, folder), { recursive: true }, (_, file) => {
      if (!/\.(ts|lua|sql|json|html|txt)$/.test(file ?? '')) return;
      for (const name of names) changed.add(name);
      clearTimeout(timer);
      timer = setTimeout(() => void restart(), settleMs);
    });
  }
}

/**
 * Serves the console with Vite.
 * @param api the origin of the api, which must see requests from Vite's pages as its own
 */
async function serveConsole(api: string): Promise<void> {
  const toApi = { target: api, changeOrigin: true, headers: { origin: api } };
  const proxy = { '/console/api': toApi, '/console/queues': toApi };
  const server = await createServer({ configFile: join(root, 'console/vite.config.ts'), server: { proxy } });
  await server.listen();
  const [address] = server.resolvedUrls?.local ?? [];
  console.log(`The console, as its sources are: ${address}`);
}
