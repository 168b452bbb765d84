// Runs published clients, unchanged, against the gateway: `npm run clients [-- language …]`. Installs what is missing, and names
// the languages that it skips because this machine has no toolchain for them; naming one makes its absence a failure.
import { spawnSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { installClients, languageNames, missingTool } from './languages.mjs';

const folder = dirname(fileURLToPath(import.meta.url));
const named = process.argv.slice(2);
const unknown = named.filter((name) => !languageNames.includes(name));
if (unknown.length > 0) {
  console.error(`Unknown language: ${unknown.join(', ')}. Known: ${languageNames.join(', ')}.`);
  process.exit(1);
}

const summary = [];
let failed = false;

async function secondsOf(work) {
  const start = performance.now();
  await work();
  return Math.round((performance.now() - start) / 1000);
}

for (const name of named.length > 0 ? named : languageNames) {
  const missing = missingTool(name);
  if (missing !== undefined) {
    summary.push(`${name}: skipped, for want of a fitting ${missing}`);
    failed ||= named.length > 0;
    continue;
  }
  let installed;
  try {
    installed = await secondsOf(() => installClients(name));
  } catch (error) {
    summary.push(`${name}: not installed: ${error.message}`);
    failed = true;
    continue;
  }
  let passed = false;
  const ran = await secondsOf(() => {
    const suite = [join(folder, '..', 'run.mjs'), `clients/${name}.test.ts`];
    passed = spawnSync(process.execPath, suite, { stdio: 'inherit' }).status === 0;
  });
  summary.push(`${name}: ${passed ? 'passed' : 'FAILED'} (installed in ${installed} s, run in ${ran} s)`);
  failed ||= !passed;
}

console.log(`\nPublished clients, by language:\n${summary.map((line) => `  ${line}`).join('\n')}`);
process.exit(failed ? 1 : 0);
