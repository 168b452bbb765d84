// `npm run check`: lint, types, the build and what the suites need of registries, beside each other; then all suites.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';

const cwd = dirname(dirname(fileURLToPath(import.meta.url)));

/** Each of these has one core or waits for a registry. Commands of a list run one after the other: the types are those of installed packages, too. */
const before = [['npm run lint'], ['npm run build -- --quick'], ['node test/run.mjs --install', 'npm run types']];

/** Whether all commands of a list succeeded. What one of them prints comes as it ends, so that it is not mixed with that of others. */
async function runAll(commands) {
  for (const command of commands) {
    const child = spawn(command, { cwd, shell: true, stdio: ['ignore', 'pipe', 'pipe'] });
    let printed = '';
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text) => (printed += text));
    const [code] = await once(child, 'close');
    console.log(printed.trimEnd());
    if (code === 0) continue;
    console.error(`\n${command} failed.`);
    return false;
  }
  return true;
}

const passed = (await Promise.all(before.map(runAll))).every(Boolean);
if (!passed) process.exit(1);
const tests = spawn('npm', ['test'], { cwd, stdio: 'inherit' });
// A terminal's Ctrl-C gets to both; the tests end what they have started.
process.on('SIGINT', () => undefined);
process.on('SIGTERM', () => tests.kill('SIGTERM'));
const [code] = await once(tests, 'exit');
process.exit(code ?? 1);
