// What the agents' programs share: an agent runs in an empty home, and reaches nobody but the gateway.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const deadlineMs = 90_000;
/** Nobody listens there. */
const nowhere = 'http://127.0.0.1:9';

/** A home and a folder to work in for the whole program. */
const folder = mkdtempSync(join(tmpdir(), 'sluice-test-client-'));
const home = join(folder, 'home');
const work = join(folder, 'work');
mkdirSync(home);
mkdirSync(work);
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));

/** The directive that has the sandbox call a tool with these arguments. */
export function calls(tool, args) {
  return `TOOL:${tool} ${JSON.stringify(args)}`;
}

/**
 * Runs an agent to its end.
 * @param script its launcher, inside `node_modules`
 * @returns how it ended, and the lines of JSON that it printed
 */
export async function runAgent(script, args, settings = {}) {
  const launcher = fileURLToPath(new URL(`node_modules/${script}`, import.meta.url));
  const proxies = { HTTPS_PROXY: nowhere, HTTP_PROXY: nowhere, NO_PROXY: '127.0.0.1,localhost' };
  const child = spawn(process.execPath, [launcher, ...args], {
    cwd: work,
    env: { PATH: process.env.PATH, HOME: home, ...proxies, ...settings },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: deadlineMs,
    killSignal: 'SIGKILL',
  });
  let output = '';
  child.stdout.on('data', (chunk) => {
    output += chunk;
  });
  child.stderr.on('data', (chunk) => process.stderr.write(chunk));
  const [code] = await once(child, 'close');
  const lines = output.split('\n').filter((line) => line.startsWith('{'));
  return { code, events: lines.map((line) => JSON.parse(line)), output };
}
