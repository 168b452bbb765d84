import { parseArgs } from 'node:util';
import { startSandbox } from './server.ts';

const usage = 'usage: sandbox [--port N] [--host ADDRESS] [--journal]';

function readArguments() {
  const { values } = parseArgs({
    options: {
      port: { type: 'string', default: '0' },
      host: { type: 'string', default: '127.0.0.1' },
      journal: { type: 'boolean', default: false },
    },
  });
  const port = Number(values.port);
  if (!/^\d+$/.test(values.port) || port > 65_535) throw new Error(`--port must be a number from 0 to 65535; ${usage}`);
  return { port, host: values.host, journal: values.journal };
}

async function main(): Promise<void> {
  // Only the owner may read its files.
  process.umask(0o077);
  const sandbox = await startSandbox(readArguments());
  const stop = () => void sandbox.close().then(() => process.exit(0));
  process.once('SIGTERM', stop).once('SIGINT', stop);
  console.log(`sandbox listening on ${sandbox.url}`);
  if (process.send !== undefined) {
    // The channel closes with the parent: without a parent, this process would never be ended.
    process.once('disconnect', stop);
    process.send({ type: 'listening', port: sandbox.port });
  }
}

main().catch((error: Error) => {
  console.error(`sandbox: ${error.message}`);
  process.exit(1);
});
