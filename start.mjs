// `npm start`: looks whether this Node can run Sluice, builds it where its sources have changed, and starts it. Plain
// JavaScript that imports nothing else before its checks: an old Node must read it far enough to print one clear sentence.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
// As a whole: an old Node lacks some of it.
import * as util from 'node:util';

const root = dirname(fileURLToPath(import.meta.url));
const launcher = join(root, 'dist', 'launcher', 'main.js');

const usage = `usage: npm start

Runs all of Sluice on this machine: Redis, an api process, a worker process and, while no vendor key is set, a sandbox
vendor. It builds Sluice first where its sources have changed. Ctrl-C stops everything.

Settings are environment variables, also from a file .env; docs/configuration.md lists them all. The first ones to know:
  PORT, HOST        where it listens (8080, 127.0.0.1)
  OPENAI_API_KEY    turns a vendor on; there is one for each vendor, such as ANTHROPIC_API_KEY
  PUBLIC_URL        the address that callers use, where it is another than HOST and PORT say
  SLUICE_DATA_DIR   the folder of the data (./data)
  SLUICE_CONFIG     a YAML file of vendors, models, prices and limits (see sluice.example.yaml)

More commands: npm run keys -- --help, npm run users -- --help, npm run migrate -- --help`;

/** Ends with one sentence. */
function fail(sentence, exitCode) {
  console.error(sentence);
  process.exit(exitCode || 1);
}

/** Whether a version, as 20.18.1, is another one or newer. */
function isAtLeast(version, least) {
  const [parts, leastParts] = [version, least].map((text) => text.split('-')[0].split('.').map(Number));
  const different = leastParts.findIndex((part, index) => part !== parts[index]);
  return different === -1 || parts[different] > leastParts[different];
}

function checkNode() {
  const least = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).engines.node.replace('>=', '');
  const version = process.versions.node;
  if (isAtLeast(version, least)) return;
  fail(
    `Sluice needs Node ${least} or newer, and ${process.execPath} is Node ${version}: install Node 24 (https://nodejs.org).`,
  );
}

/** Options that npm keeps for itself, as in `npm start --port=9000`: they arrive as environment variables that set nothing. */
const lostOption = /^npm_config_(port|host|public_url|data_dir|config|redis_url|database_url|sluice_\w+)$/;

function refuseLostOptions(environment) {
  if (environment.npm_lifecycle_event !== 'start') return;
  const lost = Object.keys(environment).find((name) => lostOption.test(name));
  if (lost === undefined) return;
  const option = `--${lost.slice('npm_config_'.length).replaceAll('_', '-')}`;
  fail(
    `npm start takes no argument "${option}": settings are environment variables, as in PORT=9000 npm start.\n\n${usage}`,
    2,
  );
}

function readArguments(args) {
  if (args.length === 0) return;
  if (args.length === 1 && (args[0] === '--help' || args[0] === '-h')) {
    console.log(usage);
    process.exit(0);
  }
  const unknown = args.find((arg) => arg !== '--help' && arg !== '-h');
  fail(`npm start takes no argument "${unknown}": settings are environment variables.\n\n${usage}`, 2);
}

/** Builds what has changed. A folder without sources (an installed build) has nothing to build. */
async function ensureBuilt() {
  if (!existsSync(join(root, 'build.mjs'))) return;
  const { isBuilt } = await import('./build-state.mjs');
  if (isBuilt(root)) return;
  if (!existsSync(join(root, 'node_modules', 'vite'))) {
    fail('Sluice has to be built, and what builds it is not installed: run npm ci, then npm start again.');
  }
  console.error(
    'Building Sluice, as is done once and after each change of its sources: this takes half a minute or less …',
  );
  const built = spawnSync(process.execPath, [join(root, 'build.mjs'), '--quick'], { cwd: root, stdio: 'inherit' });
  // What was wrong has been said.
  if (built.status !== 0) process.exit(built.status || 1);
}

/** What the shell sets stays. The launcher tells which lines set nothing. Started by itself each role has its settings from whoever starts it. */
function loadEnvironmentFile(file) {
  if (!existsSync(file)) return;
  try {
    // Editors of Windows put a mark before the first name, which would be a part of it.
    const text = readFileSync(file, 'utf8').replace(/^\ufeff/, '');
    if (text.includes('\0')) throw new Error('it is not written in UTF-8');
    for (const [name, value] of Object.entries(util.parseEnv(text))) process.env[name] ??= value;
  } catch (error) {
    fail(`${file} cannot be read: ${error.code === 'EISDIR' ? 'it is a folder' : error.message}.`);
  }
}

checkNode();
refuseLostOptions(process.env);
readArguments(process.argv.slice(2));
if (!existsSync(join(root, 'node_modules'))) fail('The packages of Sluice are not installed: run npm ci first.');
await ensureBuilt();
loadEnvironmentFile(join(root, '.env'));
console.error('Starting Sluice …');
await import(pathToFileURL(launcher).href);
