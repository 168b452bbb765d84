/** `npm run bench`: starts the targets, loads them in turns, prints and writes the figures. See README.md here. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { benchCases, type CaseTimes } from './cases.ts';
import { endChildren, nextMessage, projectRoot, startModule } from './children.ts';
import { type CaseResult, caseReport, comparisonReport, translationReport } from './report.ts';
import { canServe, isInstallable, runFresh, runInRounds } from './run-cases.ts';
import { crabllm } from './targets/crabllm.ts';
import { litellm } from './targets/litellm.ts';
import { portkey } from './targets/portkey.ts';
import { proxy } from './targets/proxy.ts';
import { limitedSluice, sluice, sluiceOf, tracedSluice } from './targets/sluice.ts';
import type { TargetKind } from './targets/target.ts';
import { vendor } from './targets/vendor.ts';
import { measureTranslations } from './translation.ts';

const defaultTargets: readonly TargetKind[] = [sluice, proxy, portkey, vendor];
/** The others need the toolchain of another language, and are measured when they are named. */
const targetKinds: readonly TargetKind[] = [sluice, proxy, portkey, litellm, crabllm, vendor];
/** The case that needs no target: the adapters alone, in this process. */
const translation = { name: 'translation' } as const;
const allCases = [...benchCases, translation];

function options() {
  const { values } = parseArgs({
    options: {
      cases: { type: 'string', default: allCases.map((each) => each.name).join(',') },
      targets: { type: 'string', default: defaultTargets.map((each) => each.name).join(',') },
      seconds: { type: 'string', default: '6' },
      rounds: { type: 'string', default: '4' },
      'events-per-write': { type: 'string', default: '10' },
      profile: { type: 'boolean', default: false },
      'profile-dir': { type: 'string' },
      'no-write': { type: 'boolean', default: false },
      before: { type: 'string' },
      traced: { type: 'string' },
      limited: { type: 'boolean', default: false },
    },
  });
  const seconds = wholeNumber('seconds', values.seconds, 120);
  const profileDirectory =
    values['profile-dir'] ?? (values.profile ? join(tmpdir(), 'sluice-bench-profile') : undefined);
  const named = chosen('cases', values.cases, allCases);
  const cases = benchCases.filter((each) => named.includes(each));
  const targets = chosen('targets', values.targets, targetKinds);
  const hasDefaultTargets = defaultTargets.every((kind) => targets.includes(kind));
  const whole = named.length === allCases.length && hasDefaultTargets && !profileDirectory;
  // Beside this checkout's in each round: a ratio of two runs would be one of two machines.
  if (values.before !== undefined) targets.splice(1, 0, earlierSluice(resolve(values.before)));
  if (values.traced !== undefined) targets.splice(1, 0, tracedSluice(shareOf(values.traced)));
  if (values.limited) targets.splice(1, 0, limitedSluice);
  return {
    cases,
    withTranslation: named.includes(translation),
    targets,
    times: { seconds, warmupSeconds: seconds / 2 },
    rounds: evenNumber('rounds', values.rounds, 20),
    eventsPerWrite: wholeNumber('events-per-write', values['events-per-write'], 60),
    profileDirectory,
    write: whole && !values['no-write'],
  };
}

function earlierSluice(root: string): TargetKind {
  return sluiceOf('before', root, `Sluice of commit ${command('git', '-C', root, 'rev-parse', '--short', 'HEAD')}`);
}

function shareOf(text: string): number {
  const share = Number(text);
  if (!(share >= 0 && share <= 1)) throw new Error(`--traced takes a share from 0 to 1, not ${text}`);
  return share;
}

/** Each order of the targets occurs as often as the other, as who comes first is slower. */
function evenNumber(name: string, text: string, maximum: number): number {
  const value = wholeNumber(name, text, maximum);
  if (value % 2 !== 0) throw new Error(`--${name} takes an even number, not ${text}`);
  return value;
}

function wholeNumber(name: string, text: string, maximum: number): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1 || value > maximum) {
    throw new Error(`--${name} takes a whole number from 1 to ${maximum}, not ${text}`);
  }
  return value;
}

function chosen<Named extends { name: string }>(option: string, text: string, all: readonly Named[]): Named[] {
  const names = text.split(',');
  const unknown = names.find((name) => !all.some((each) => each.name === name));
  if (unknown !== undefined) {
    throw new Error(`--${option} takes ${all.map((each) => each.name).join(', ')}, not ${unknown}`);
  }
  return all.filter((each) => names.includes(each.name));
}

function hasFailures(result: CaseResult): boolean {
  return [...result.targets.values()].flat().some((round) => round !== undefined && round.failed > 0);
}

function command(name: string, ...args: string[]): string {
  try {
    return execFileSync(name, args, { cwd: projectRoot, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  } catch {
    return 'unknown';
  }
}

function heading(times: CaseTimes, rounds: number, eventsPerWrite: number, measured: readonly TargetKind[]): string {
  const changes = command('git', 'status', '--porcelain') === '' ? '' : '+changes';
  const redis = /v=(\S+)/.exec(command('redis-server', '--version'))?.[1] ?? 'unknown';
  return [
    '# Benchmark results',
    '',
    `- Date: ${new Date().toISOString().slice(0, 16).replace('T', ' ')} UTC, commit ${command('git', 'rev-parse', '--short', 'HEAD')}${changes}`,
    `- Machine: ${cpus()[0]?.model.trim()}, ${cpus().length} cores for everything, load and vendor included; Node ${process.versions.node}, Redis ${redis}`,
    `- Medians of ${rounds} rounds of ${times.seconds} s after ${times.warmupSeconds} s of warm-up, targets in turns, to and fro, and started anew for every two; ratios are medians of those of each round`,
    `- Targets: ${measured.map(({ name, description }) => `${name} (${description})`).join(', ')}`,
    `- Streams of 50 tokens leave the vendor as fast as they can, ${eventsPerWrite} events per write, each in its own HTTP chunk`,
  ].join('\n');
}

/** Whether everything was measured and nothing failed on the way. */
async function main(): Promise<boolean> {
  const { cases, withTranslation, targets: kinds, times, rounds, eventsPerWrite, profileDirectory, write } = options();
  const directory = mkdtempSync(join(tmpdir(), 'sluice-bench-'));
  process.once('exit', (code) => {
    if (code === 1) console.error(`Logs are kept in ${directory}`);
    else rmSync(directory, { recursive: true, force: true });
  });
  const vendorChild = startModule(
    'vendor',
    'minimal-vendor.ts',
    [String(eventsPerWrite)],
    join(directory, 'vendor.log'),
  );
  const { port } = await nextMessage<{ port: number }>(vendorChild, 20_000);
  const base = {
    vendor: vendorChild,
    vendorOrigin: `http://127.0.0.1:${port}`,
    directory,
    ...(profileDirectory ? { profileDirectory } : {}),
  };

  const translations = withTranslation ? await measureTranslations(rounds) : [];
  if (withTranslation) console.log(`\n${translationReport(translations)}\n`);
  const results: CaseResult[] = [];
  const report = (result: CaseResult) => {
    results.push(result);
    console.log(`\n${caseReport(result)}\n`);
  };
  const inRounds = cases.filter((each) => !each.memory);
  const bench = { times, rounds, base, isEnding: () => ending !== undefined };
  for (const result of await runInRounds(inRounds, kinds, bench)) report(result);
  for (const benchCase of cases.filter((each) => each.memory)) report(await runFresh(benchCase, kinds, bench));

  const measured = kinds.filter(isInstallable);
  const baselines = measured.map((kind) => kind.name).filter((name) => name !== sluice.name);
  const comparison = comparisonReport(results, sluice.name, baselines);
  console.log(comparison);
  if (profileDirectory) console.log(`\nCPU profiles are in ${profileDirectory}`);
  const complete = results.every((result) =>
    measured
      .filter((kind) => canServe(kind, result.benchCase))
      .every((kind) => result.targets.get(kind.name)?.every((round) => round !== undefined)),
  );
  if (write && complete) {
    const parts = [
      heading(times, rounds, eventsPerWrite, measured),
      ...results.map(caseReport),
      translationReport(translations),
      comparison,
    ];
    writeFileSync(join(projectRoot, 'test', 'bench', 'RESULTS.md'), `${parts.join('\n\n')}\n`);
  } else if (write) {
    console.error('RESULTS.md is left as it was: a target or a case is missing.');
  }
  return complete && !results.some(hasFailures);
}

let ending: Promise<never> | undefined;

/** Ends everything, then the bench itself; the first caller's code is the one it exits with. */
function endWith(code: number): Promise<never> {
  ending ??= endChildren().then(() => process.exit(code));
  return ending;
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => endWith(130));
main().then(
  (sound) => endWith(sound ? 0 : 1),
  (error: unknown) => {
    if (!ending) console.error(error instanceof Error ? error.message : error);
    return endWith(1);
  },
);
