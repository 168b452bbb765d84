// Runs the test suites: `node test/run.mjs [part of a path …]`, or installs only what they need of registries, with `--install`.
// Needs `npm run build` first. Fails when a test fails, is
// skipped or is left to do: a machine that lacks a part must not look like one where everything works.
// The suites run on the version of Node that counts and on SQLite. Those whose outcome is the database's run a second time
// on Postgres; those about what Node itself does, such as streams, on the other versions that must work. With
// SLUICE_TEST_DATABASE=postgres, or sqlite, or SLUICE_TEST_NODE=22, say, all of them run on that one only. The soak runs those
// about what is shared through Redis on a Cluster, too; SLUICE_TEST_REDIS=cluster runs all of them on one only.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { installClients, languageNames, missingTool } from './clients/languages.mjs';
import { mainVersion, otherVersions } from './node-versions/find-node.mjs';
import { runPool } from './pool.mjs';
import { buildReleaseBefore, whyNotBuilt } from './release-before/release-before.mjs';
import { clusterSuites, databaseSuites, longSuites, slowSuites, suitesOf } from './suites.mjs';
import { outcomes } from './tap-report.mjs';
import { endTestProcesses, hasEnded, runTestProcess } from './test-process.mjs';
import { installValkey } from './valkey/valkey.mjs';

const folder = dirname(fileURLToPath(import.meta.url));
/**
 * Processes of suites at a time, more than there are cores where there are two: most wait for a process that dies, or for time,
 * longer than they work. A browser takes more than a core while a page loads, and its pages have deadlines.
 */
const rooms = { all: 6, places: { browser: 2 }, most: { slow: 2 } };
/**
 * What begins first: what takes longest, and at last what only computes, in processes that suites share, so that the machine has work
 * to the end.
 */
const order = ['browser', 'slow', 'quick', 'part'];
const inOrder = (tasks) => order.flatMap((kind) => tasks.filter((task) => task.kind === kind));

/** Every kind of Redis, Valkey too. */
const redisSuites = 'integration/redis/';

/** Runs the release before this one, which is built of the history first. */
const rollingSuite = 'campaign/rolling-upgrade.test.ts';

/** Published clients, by language, which are installed first. See `npm run clients`. */
const clientSuites = 'clients/';

/** Clients in these languages are part of every run of all suites; the soak has those in the others, too, where the machine has what builds them. */
const everyRunsClients = ['javascript', 'python'];

/** Node 20's own search knows no TypeScript. */
async function listFiles(parts) {
  const suites = readdirSync(folder, { recursive: true })
    .filter((path) => path.endsWith('.test.ts') && !path.startsWith('bench') && !path.includes('node_modules'))
    .sort();
  const isClients = (path) => path.startsWith(clientSuites);
  const named = suites.filter((path) => parts.some((part) => path.includes(part)));
  // Naming a part of all paths, such as `sdk`, does not mean them.
  if (parts.length > 0) return named.filter((path) => !isClients(path) || parts.some(isClients));
  const clients = clientsOfWholeRun().map(clientSuite);
  const hasRolling = await includesRolling();
  return suites.filter((path) => (isClients(path) ? clients.includes(path) : path !== rollingSuite || hasRolling));
}

/** Beside other suites an api is too slow for the health checks of its load balancer, so it is left to the soak. */
async function includesRolling() {
  if (!process.env.SLUICE_SOAK) return false;
  // A copy without history, such as a shallow clone, has nothing to build the release before from.
  const why = await whyNotBuilt();
  if (why !== undefined) console.error(`${rollingSuite}: left out, for ${why}`);
  return why === undefined;
}

function clientSuite(language) {
  return `${clientSuites}${language}.test.ts`;
}

function clientsOfWholeRun() {
  if (!process.env.SLUICE_SOAK) return everyRunsClients;
  return languageNames.filter((name) => {
    const missing = everyRunsClients.includes(name) ? undefined : missingTool(name);
    if (missing !== undefined) console.error(`Published clients, ${name}: left out, for want of a fitting ${missing}.`);
    return missing === undefined;
  });
}

/** What the suites test that are packages of their own, apart from the project's. @throws Error where one cannot be installed. */
async function installFor(suites) {
  const languages = languageNames.filter((name) => suites.includes(clientSuite(name)));
  const isAgents = suites.some((path) => path.startsWith('agents') || path === 'launcher/documented-commands.test.ts');
  const outcomes = await Promise.allSettled([
    isAgents ? import('./agents/install.mjs') : undefined,
    suites.some((path) => path.startsWith(redisSuites)) ? installValkey() : undefined,
    suites.some((path) => path.startsWith('deploy/chart')) ? import('./deploy/helm/install.mjs') : undefined,
    suites.includes(rollingSuite) ? buildReleaseBefore() : undefined,
    ...languages.map(installClients),
  ]);
  const failed = outcomes.find(({ status }) => status === 'rejected');
  if (failed !== undefined) throw failed.reason;
}

/** This shell's settings must neither change what the tests see nor let them call a vendor with a real key. */
function cleanEnvironment() {
  const settings =
    /(_API_KEY|_AUTH_TOKEN|_BASE_URL)$|^(SLUICE|WORKER|OPENAI|AWS)_|^(REDIS_\w+|DATABASE_URL|BLOBS_URL|PUBLIC_URL|PORT|HOST|LOG_LEVEL)$/;
  const wanted = new Set([
    ...['SLUICE_SOAK', 'SLUICE_TEST_BASE_URL', 'SLUICE_TEST_PORT', 'SLUICE_TEST_DATABASE', 'SLUICE_TEST_REDIS'],
    // Which requests and faults are drawn again; see test/campaign and test/fuzz.
    ...['SLUICE_CAMPAIGN_SEED', 'SLUICE_FUZZ_SEED'],
    // How long the calm of test/deploy/alert-drills.test.ts is.
    'SLUICE_CALM_MINUTES',
  ]);
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => wanted.has(name) || !settings.test(name)));
}

/** What to read first of a failed run, said once more at its end: what a run of one group prints is far above that of the next. */
const failures = [];
const failuresSaid = 20;

/** Much of what a process does at its start is to compile: the hundreds that the suites start have that from the first. */
const compiled = mkdtempSync(join(tmpdir(), 'sluice-test-compiled-'));

/** Where the suites of integration and console keep answers, which are held against /openapi.json at the end. */
const answers = mkdtempSync(join(tmpdir(), 'sluice-test-answers-'));

/** Suites without processes of their own share one, some of them each: to start and to load costs most of these more than their tests. */
const sharing = { 'vendors/': 8, 'unit/': 5, 'sandbox/': 2 };
/** How many tests of all processes ended how. */
const counts = Object.fromEntries(outcomes.map((name) => [name, 0]));

/**
 * The tasks for the pool that run these suites with one version of Node.
 * @param on what they are said to run on, such as `Node 22`
 */
function tasksOf({ version, files, settings = {}, on = '' }) {
  const { parts, rest } = files.length === 1 ? { parts: [], rest: files } : dealParts(files);
  const slow = among(slowSuites, rest);
  const kindOf = (file) => (file.endsWith('.browser.test.ts') ? 'browser' : slow.includes(file) ? 'slow' : 'quick');
  const task = (kind, files) => ({ kind, run: () => runTask({ version, files, settings, on }) });
  return [...rest.map((file) => task(kindOf(file), [file])), ...parts.map((part) => task('part', part))];
}

async function runTask({ version, files, settings, on }) {
  const environment = {
    ...cleanEnvironment(),
    ...{ NODE_COMPILE_CACHE: compiled, SLUICE_TEST_ANSWERS: answers, SLUICE_CHECK_KEYS: 'off' },
  };
  const result = await runTestProcess({ version, files, settings, on, environment, isAlone });
  for (const name of outcomes) counts[name] += result.counts[name];
  failures.push(...result.failures.map((failure) => (on === '' ? failure : `On ${on}: ${failure}`)));
  return result.passed;
}

/** Deals the suites that share processes to these; the rest are those that have their own. */
function dealParts(files) {
  const parts = [];
  let rest = files;
  for (const [start, count] of Object.entries(sharing)) {
    const own = among([start], rest).filter((path) => !path.endsWith('.browser.test.ts'));
    const long = longSuites.flatMap((suite) => among([suite], own));
    const shared = [...new Set([...long, ...own])];
    rest = rest.filter((path) => !shared.includes(path));
    for (let part = 0; part < count; part++) parts.push(shared.filter((_, index) => index % count === part));
  }
  return { parts: parts.filter((part) => part.length > 0), rest };
}

/** Whether every answer that was kept is as /openapi.json says. Single suites may have kept none; all of them together have. */
async function checkAnswers(isWhole) {
  if (!isWhole && readdirSync(answers).length === 0) return true;
  const check = join(folder, 'support', 'check-answers.ts');
  const options = { cwd: dirname(folder), stdio: 'inherit' };
  const [code] = await once(spawn(process.execPath, ['--import', 'tsx', check, answers], options), 'exit');
  return code === 0;
}

const parts = process.argv.slice(2).filter((part) => part !== '--install');
const suites = await listFiles(parts);
if (suites.length === 0) {
  console.error('No test file matches.');
  process.exit(1);
}
await installFor(suites);
if (process.argv.includes('--install')) process.exit();
const files = suites.map((path) => join(folder, path));
// Both get a terminal's Ctrl-C; this one waits for the others' end.
process.on('SIGINT', () => endTestProcesses());
process.on('SIGTERM', () => endTestProcesses('SIGTERM'));

/** Those of the files whose suites are listed, by how their paths begin. */
function among(suites, of = files) {
  return of.filter((path) => suites.some((suite) => path.startsWith(join(folder, suite))));
}

const version = Number(process.env.SLUICE_TEST_NODE ?? mainVersion);
const onPostgres = process.env.SLUICE_TEST_DATABASE === undefined ? among(databaseSuites) : [];
const isClusterToo = process.env.SLUICE_SOAK && process.env.SLUICE_TEST_REDIS === undefined;
const onCluster = isClusterToo ? among(clusterSuites) : [];
// Who names suites wants to see them quickly.
const isWhole = parts.length === 0;
const others = process.env.SLUICE_TEST_NODE === undefined && isWhole ? otherVersions : [];
const groups = [
  { version, files },
  { on: 'Postgres', version, files: onPostgres, settings: { SLUICE_TEST_DATABASE: 'postgres' } },
  { on: 'a Redis Cluster', version, files: onCluster, settings: { SLUICE_TEST_REDIS: 'cluster' } },
  ...others.map((other) => ({
    ...{ on: `Node ${other}`, version: other, settings: { SLUICE_TEST_OTHER_NODE: '1' } },
    files: among(suitesOf(other)),
  })),
];
const tasks = groups.flatMap((group) => tasksOf(group));
const isAlone = tasks.length === 1;
let passed = true;
// The soak's figures are those of suites that have the machine to themselves.
const runs = process.env.SLUICE_SOAK ? groups.map((group) => tasksOf(group)) : [tasks];
for (const run of runs) passed = (await runPool(inOrder(run), rooms)) && passed;
if (!isAlone) console.log(outcomes.map((name) => `ℹ ${name} ${counts[name]}`).join('\n'));
if (!hasEnded()) passed = (await checkAnswers(isWhole)) && passed;
if (failures.length > 0) {
  console.error(`\nFailed in this run: ${failures.length}`);
  for (const failure of failures.slice(0, failuresSaid)) console.error(`\n${failure}`);
}
rmSync(compiled, { recursive: true, force: true });
rmSync(answers, { recursive: true, force: true });
process.exit(passed ? 0 : 1);
