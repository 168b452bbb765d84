/** `npm start`: everything on one machine with one command. */
import { fileURLToPath } from 'node:url';
import { checkEnvironmentFile, environmentFile } from './command-settings.ts';
import { runLauncher } from './run-launcher.ts';

// start.mjs has loaded it.
checkEnvironmentFile(environmentFile);
await runLauncher({
  buildLock: fileURLToPath(new URL('../../dist.lock', import.meta.url)),
  api: fileURLToPath(new URL('../api/main.js', import.meta.url)),
  worker: fileURLToPath(new URL('../workers/main.js', import.meta.url)),
  sandbox: fileURLToPath(new URL('../sandbox/main.js', import.meta.url)),
});
