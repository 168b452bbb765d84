import { once } from 'node:events';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Below the ports that Linux gives to outgoing connections (32768 and up), one of which may take a port at any moment. */
const lowest = 12_000;
const highest = 31_999;
/** One file for each port that is taken, with the process id of who took it. */
const folder = join(tmpdir(), 'sluice-test-ports');

const taken = new Set<string>();
process.on('exit', () => {
  for (const file of taken) rmSync(file, { force: true });
});

/** A TCP port of 127.0.0.1 that is free, and that no other test process gets while this one runs. */
export async function freePort(): Promise<number> {
  mkdirSync(folder, { recursive: true });
  for (;;) {
    const port = lowest + Math.floor(Math.random() * (highest - lowest + 1));
    if (take(join(folder, String(port))) && (await isFree(port))) return port;
  }
}

function take(file: string): boolean {
  try {
    writeFileSync(file, String(process.pid), { flag: 'wx' });
    taken.add(file);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  // Of a process that was killed: the next that comes upon this port may have it.
  if (!isRunning(file)) rmSync(file, { force: true });
  return false;
}

function isRunning(file: string): boolean {
  try {
    process.kill(Number(readFileSync(file, 'utf8')) || process.pid, 0);
    return true;
  } catch {
    return false;
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  const failed = once(server, 'error').then(() => false);
  const listening = new Promise<boolean>((resolve) => server.listen(port, '127.0.0.1', () => resolve(true)));
  const free = await Promise.race([failed, listening]);
  if (free) await new Promise<void>((resolve) => server.close(() => resolve()));
  return free;
}
