// Runs the test suites: `node test/run.mjs [part of a path …]`, or installs only what they need of registries, with `--install`.
// Needs `npm run build` first. Fails when a test fails, is
// skipped or is left to do: a machine that lacks a part must not look like one where everything works.
// The suites run on the version of Node that counts and on SQLite. Those whose outcome is the database's run a second time
// on Postgres; those about what Node itself does, such as streams, on the other versions that must work. With
// SLUICE_TEST_DATABASE=postgres, or sqlite, or SLUICE_TEST_NODE=22, say, all of them run on that one only. The soak runs those
// about what is shared through Redis on a Cluster, too; SLUICE_TEST_REDIS=cluster runs all of them on one only.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { installClients, languageNames, missingTool } from './clients/languages.mjs';
import { findNode, mainVersion, otherVersions, runsTypeScript, withNode } from './node-versions/find-node.mjs';
import { buildReleaseBefore, whyNotBuilt } from './release-before/release-before.mjs';
import { clusterSuites, databaseSuites, longSuites, slowSuites, suitesOf } from './suites.mjs';
import { count, failedTests, lastNamed } from './tap-report.mjs';
import { installValkey } from './valkey/valkey.mjs';

const folder = dirname(fileURLToPath(import.meta.url));
/** Suites at a time, more than there are cores where there are two: most wait for a process that dies, or for time, longer than they work. */
const concurrency = 6;
/** Of each of the runs that are under way together, of which that on the oldest version has the most suites. */
const [besideOthers, onOldest] = [2, 3];
/** Slow suites at a time, and how many of the others beside them. */
const [slowConcurrency, besideSlow] = [2, 4];
/** Those with a browser, which takes more than a core while a page loads, and whose pages have deadlines. */
const browserConcurrency = 3;
/** A suite that hangs ends; the soak has its time. */
const timeoutMs = process.env.SLUICE_SOAK ? 2 * 3_600_000 : 300_000;
/** One whose process stays, because a test has left something open in it, ends later. */
const fileSeconds = (3 * timeoutMs) / 1000;
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
/** Older versions of Node run each file in a process of its own. */
const sharingSince = 22;

const running = new Set();
/** Whether a signal has ended the run: then no further suites start. */
let isEnded = false;

/**
 * Runs suites with one version of Node: first those with a browser, then all others. What shares processes comes after the slow
 * ones, beside the rest, so that the machine has work to the end. Returns whether all their tests passed.
 * @param on what it is said to run on, such as `Node 22`
 * @param atATime suites at a time
 */
async function run({ version, files, settings = {}, on = '' }, atATime = concurrency) {
  const runFiles = async (files, atATime) =>
    files.length === 0 || (await runTogether({ version, files, settings, on }, atATime));
  const runParts = async (parts, atATime) => {
    const waiting = [...parts];
    const runNext = async (passed = true) => {
      const part = waiting.shift();
      return part === undefined ? passed : runNext((await runInOne({ version, files: part, settings, on })) && passed);
    };
    return (await Promise.all(Array.from({ length: atATime }, () => runNext()))).every(Boolean);
  };
  const { parts, rest } = files.length === 1 ? { parts: [], rest: files } : dealParts(files);
  const browsers = rest.filter((path) => path.endsWith('.browser.test.ts'));
  const others = rest.filter((path) => !browsers.includes(path));
  const slow = atATime === concurrency ? among(slowSuites, others) : [];
  const quick = others.filter((path) => !slow.includes(path));
  const browsersPassed = await runFiles(browsers, browserConcurrency);
  if (atATime < concurrency) {
    // Of runs that are under way together, the one with parts is the longest: it would be alone at the end.
    const passed = await Promise.all([runParts(parts, atATime), runFiles(quick, atATime)]);
    return passed.every(Boolean) && browsersPassed;
  }
  const passed =
    slow.length === 0
      ? [await runParts(parts, atATime), await runFiles(quick, atATime)]
      : await Promise.all([
          runFiles(slow, slowConcurrency).then(async (passed) => (await runParts(parts, slowConcurrency)) && passed),
          runFiles(quick, besideSlow),
        ]);
  return passed.every(Boolean) && browsersPassed;
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

/** One run of `node --test`: so many files at a time, or `none` apart. Returns whether all its tests passed. */
async function runTogether({ version, files, settings, on }, concurrency) {
  if (isEnded) return false;
  const node = await findNode(version);
  const reports = mkdtempSync(join(tmpdir(), 'sluice-test-report-'));
  const tap = join(reports, 'report.tap');
  const apart = concurrency === 'none' ? '--experimental-test-isolation=none' : `--test-concurrency=${concurrency}`;
  const options = ['--test', apart, `--test-timeout=${timeoutMs}`];
  // Newer ones run TypeScript themselves, which takes less time in each of hundreds of processes.
  if (!runsTypeScript(node)) options.unshift('--import', 'tsx');
  if (concurrency !== 'none') options.unshift('--import', './test/support/end-late-process.mjs');
  const reporters = ['--test-reporter=spec', '--test-reporter-destination=stdout', '--test-reporter=tap'];
  const tests = spawn(node, [...options, ...reporters, `--test-reporter-destination=${tap}`, ...files], {
    cwd: dirname(folder),
    env: {
      ...withNode(node, cleanEnvironment()),
      ...{ NODE_COMPILE_CACHE: compiled, SLUICE_TEST_ANSWERS: answers, SLUICE_CHECK_KEYS: 'off' },
      SLUICE_TEST_FILE_SECONDS: String(fileSeconds),
      ...settings,
    },
    stdio: 'inherit',
  });
  const code = await exitOf(tests);
  const report = readFileSync(tap, 'utf8');
  rmSync(reports, { recursive: true, force: true });
  const failed = failedTests(report);
  if (code !== 0 && failed.length === 0) {
    failed.push(`✖ node --test ended with ${code}, and named no test that failed. The last:\n${lastNamed(report)}`);
  }
  failures.push(...failed.map((failure) => (on === '' ? failure : `On ${on}: ${failure}`)));
  const missing = count(report, 'skipped') + count(report, 'todo');
  if (code === 0 && missing !== 0) {
    console.error(`\n${missing} tests were skipped or left to do: that counts as a failure here.`);
  }
  return code === 0 && missing === 0;
}

/** The same in one process. An older Node gets one file that loads the others all at once, so that each has declared its tests and hooks when the first test runs. */
async function runInOne({ version, files, settings, on }) {
  if (version >= sharingSince) return await runTogether({ version, files, settings, on }, 'none');
  const directory = mkdtempSync(join(tmpdir(), 'sluice-test-loader-'));
  const loader = join(directory, 'suites.test.mjs');
  writeFileSync(loader, files.map((file) => `import ${JSON.stringify(pathToFileURL(file).href)};\n`).join(''));
  const passed = await runTogether({ version, files: [loader], settings, on }, 1);
  rmSync(directory, { recursive: true, force: true });
  return passed;
}

/** Whether every answer that was kept is as /openapi.json says. Single suites may have kept none; all of them together have. */
async function checkAnswers(isWhole) {
  if (!isWhole && readdirSync(answers).length === 0) return true;
  const check = join(folder, 'support', 'check-answers.ts');
  const options = { cwd: dirname(folder), stdio: 'inherit' };
  return (await exitOf(spawn(process.execPath, ['--import', 'tsx', check, answers], options))) === 0;
}

/** The code or the signal that a child ends with, which is ended with this process. */
async function exitOf(child) {
  running.add(child);
  const [code, signal] = await once(child, 'exit');
  running.delete(child);
  return code ?? signal;
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
// Both get a terminal's Ctrl-C; this one waits for the other's end.
process.on('SIGINT', () => {
  isEnded = true;
});
process.on('SIGTERM', () => {
  isEnded = true;
  for (const child of running) child.kill('SIGTERM');
});

/** Those of the files whose suites are listed, by how their paths begin. */
function among(suites, of = files) {
  return of.filter((path) => suites.some((suite) => path.startsWith(join(folder, suite))));
}

const version = Number(process.env.SLUICE_TEST_NODE ?? mainVersion);
let passed = await run({ version, files });
const onPostgres = process.env.SLUICE_TEST_DATABASE === undefined ? among(databaseSuites) : [];
const isClusterToo = process.env.SLUICE_SOAK && process.env.SLUICE_TEST_REDIS === undefined;
const onCluster = isClusterToo ? among(clusterSuites) : [];
// Who names suites wants to see them quickly.
const isWhole = parts.length === 0;
const others = process.env.SLUICE_TEST_NODE === undefined && isWhole ? otherVersions : [];
const further = [
  { on: 'Postgres', version, files: onPostgres, settings: { SLUICE_TEST_DATABASE: 'postgres' } },
  { on: 'a Redis Cluster', version, files: onCluster, settings: { SLUICE_TEST_REDIS: 'cluster' } },
  ...others.map((other) => ({
    ...{ on: `Node ${other}`, version: other, settings: { SLUICE_TEST_OTHER_NODE: '1' } },
    files: among(suitesOf(other)),
  })),
].filter(({ files }) => files.length > 0);
if (passed && further.length > 0) {
  console.log(`\nOn ${further.map(({ on }) => on).join(', ')}:`);
  // The soak's figures are those of suites that have the machine to themselves.
  if (process.env.SLUICE_SOAK) for (const each of further) passed = (await run(each)) && passed;
  else {
    const atATime = ({ version }) => (version === otherVersions[0] ? onOldest : besideOthers);
    passed = (await Promise.all(further.map((each) => run(each, atATime(each))))).every(Boolean);
  }
}
if (!isEnded) passed = (await checkAnswers(isWhole)) && passed;
if (failures.length > 0) {
  console.error(`\nFailed in this run: ${failures.length}`);
  for (const failure of failures.slice(0, failuresSaid)) console.error(`\n${failure}`);
}
rmSync(compiled, { recursive: true, force: true });
rmSync(answers, { recursive: true, force: true });
process.exit(passed ? 0 : 1);
