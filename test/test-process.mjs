// One process of tests: a suite, or several that share it.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { findNode, runsTypeScript, withNode } from './node-versions/find-node.mjs';
import { count, failedTests, lastNamed, outcomes, withoutSummary } from './tap-report.mjs';

const folder = dirname(fileURLToPath(import.meta.url));
/** A test that hangs ends, by Node itself since 24; the soak has its time. */
const testMs = process.env.SLUICE_SOAK ? 2 * 3_600_000 : 300_000;
/** A process that stays, because a test has left something open in it, ends later, and says what is open. */
const fileSeconds = (3 * testMs) / 1000;
/** One whose event loop is blocked cannot even do that. */
const blockedMs = (fileSeconds + 30) * 1000;
/** What a process printed last is said again where none of its tests is named. */
const linesOfUnnamed = 20;
/** Older versions of Node load the files that share a process by one more. */
const sharingSince = 22;

const running = new Set();
/** Whether a signal has ended the run: then no further process starts. */
let isEnded = false;

/** Ends the processes that run, and starts no more. */
export function endTestProcesses(signal) {
  isEnded = true;
  if (signal !== undefined) for (const child of running) child.kill(signal);
}

/** Whether a signal has ended the run. */
export const hasEnded = () => isEnded;

/**
 * Runs suites in one process of this version of Node. What it prints comes as it ends, so that it is not mixed with that of others,
 * or at once where it `isAlone`.
 * @param on what they are said to run on, such as `Node 22`, or nothing
 * @returns whether all its tests passed, how many there were by outcome, and what to read first of those that failed
 */
export async function runTestProcess({ version, files, settings, on, environment, isAlone }) {
  const counts = Object.fromEntries(outcomes.map((name) => [name, 0]));
  if (isEnded) return { passed: false, counts, failures: [] };
  const node = await findNode(version);
  const reports = mkdtempSync(join(tmpdir(), 'sluice-test-report-'));
  const [tap, printed] = [join(reports, 'report.tap'), join(reports, 'printed.txt')];
  // A file, and no pipe: one that a process left behind holds open would never end.
  const out = isAlone ? 'inherit' : openSync(printed, 'w');
  const tests = spawn(node, [...optionsOf(node, tap), ...filesOf(files, version, reports)], {
    cwd: dirname(folder),
    env: { ...withNode(node, environment), SLUICE_TEST_FILE_SECONDS: String(fileSeconds), ...settings },
    stdio: [isAlone ? 'inherit' : 'ignore', out, out],
  });
  if (!isAlone) closeSync(out);
  const startedAt = performance.now();
  const code = await exitOf(tests);
  const seconds = Math.round((performance.now() - startedAt) / 1000);
  const text = isAlone ? '' : withoutSummary(readFileSync(printed, 'utf8'));
  if (!isAlone) console.log(`${namesOf(files)}${on === '' ? '' : ` on ${on}`}, ${seconds} s:\n${text}\n`);
  // A process that is killed early leaves none.
  const report = existsSync(tap) ? readFileSync(tap, 'utf8') : '';
  rmSync(reports, { recursive: true, force: true });
  const failures = failedTests(report);
  if (code !== 0 && failures.length === 0) failures.push(unnamedFailure(files, code, report, text));
  for (const name of outcomes) counts[name] = count(report, name) || 0;
  const missing = count(report, 'skipped') + count(report, 'todo');
  if (code === 0 && missing !== 0) failures.push(`✖ ${namesOf(files)}: ${missing} tests were skipped or left to do`);
  return { passed: failures.length === 0, counts, failures };
}

function optionsOf(node, tap) {
  const options = [`--test-timeout=${testMs}`, '--import', './test/support/end-late-process.mjs'];
  // Newer ones run TypeScript themselves, which takes less time in each of hundreds of processes.
  if (!runsTypeScript(node)) options.unshift('--import', 'tsx');
  const reporters = ['--test-reporter=spec', '--test-reporter-destination=stdout', '--test-reporter=tap'];
  return [...options, ...reporters, `--test-reporter-destination=${tap}`];
}

/** The arguments by which Node runs these files: an older one gets one file that loads the others all at once, so that each has declared its tests and hooks when the first test runs. */
function filesOf(files, version, directory) {
  if (files.length === 1) return files;
  if (version >= sharingSince) return ['--test', '--experimental-test-isolation=none', ...files];
  const loader = join(directory, 'suites.test.mjs');
  writeFileSync(loader, files.map((file) => `import ${JSON.stringify(pathToFileURL(file).href)};\n`).join(''));
  return [loader];
}

function namesOf([file, ...others]) {
  return `${relative(folder, file)}${others.length === 0 ? '' : ` and ${others.length} others`}`;
}

function unnamedFailure(files, code, report, text) {
  const printed = text.split('\n').slice(-linesOfUnnamed).join('\n');
  return `✖ ${namesOf(files)} ended with ${code}, and named no test that failed. The last:\n${lastNamed(report)}\n${printed}`;
}

/** The code or the signal that a child ends with, which is ended with this process. */
async function exitOf(child) {
  running.add(child);
  const blocked = setTimeout(() => child.kill('SIGKILL'), blockedMs);
  const [code, signal] = await once(child, 'exit');
  clearTimeout(blocked);
  running.delete(child);
  return code ?? signal;
}
