import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { benchText } from './bench-requests.ts';
import { type BenchCase, type CaseTimes, checkAnswers, type Measurement, measure, openStreams } from './cases.ts';
import type { CaseResult } from './report.ts';
import { NotInstallable, type Target, type TargetKind, type TargetOptions } from './targets/target.ts';

/** What is common to all cases of a run. */
export interface Bench {
  readonly times: CaseTimes;
  /** An even number. */
  readonly rounds: number;
  /** What every target is started with, each in a folder of its own within this one's. */
  readonly base: Omit<TargetOptions, 'concurrency'>;
  /** Whether the run is being ended, which makes everything under way fail. */
  readonly isEnding: () => boolean;
}

/** The targets that turned out not to be installable here. */
const notInstallable = new Set<TargetKind>();

/** Whether a target can be installed here, as far as is known. */
export function isInstallable(kind: TargetKind): boolean {
  return !notInstallable.has(kind);
}

/** Whether a target is measured in a case. */
export function canServe(kind: TargetKind, benchCase: BenchCase): boolean {
  return isInstallable(kind) && !kind.unsupportedCases?.includes(benchCase.name);
}

/**
 * All rounds of all cases. Every target is started anew for every two of them: two processes of one program differ by a tenth in
 * what large bodies cost them, for as long as they run. Every other time the last target is the first: the first round after a start
 * is the slowest of all.
 */
export async function runInRounds(
  cases: readonly BenchCase[],
  kinds: readonly TargetKind[],
  bench: Bench,
): Promise<CaseResult[]> {
  const results = cases.map((benchCase) => ({ benchCase, targets: new Map() }));
  for (let round = 0; cases.length > 0 && round < bench.rounds; round += 2) {
    const started = new Map<TargetKind, Target>();
    for (const kind of kinds.filter(isInstallable)) {
      const target = await startTarget(kind, bench, `${kind.name}-${round}`);
      if (target) started.set(kind, target);
    }
    for (const result of results) {
      const targets = [...started].flatMap(([kind, target]) => (canServe(kind, result.benchCase) ? [target] : []));
      await runToAndFro(result, round % 4 === 0 ? targets : targets.toReversed(), bench);
    }
    for (const target of started.values()) await target.close();
  }
  return results;
}

/** One new process after the other: what an earlier load left in memory would be taken for the streams'. */
export async function runFresh(benchCase: BenchCase, kinds: readonly TargetKind[], bench: Bench): Promise<CaseResult> {
  const result: CaseResult = { benchCase, targets: new Map() };
  for (const kind of kinds.filter((each) => canServe(each, benchCase))) {
    const target = await startTarget(kind, bench, `${kind.name}-${benchCase.name}`, openStreams + 500);
    if (!target) continue;
    result.targets.set(kind.name, [await tryMeasure(benchCase, target, bench)]);
    await target.close();
  }
  return result;
}

/**
 * Two rounds of all targets in turns, so that each round has all of them under the same weather; the second from the last to the
 * first, since who comes first is slower by a tenth, even beside itself.
 */
async function runToAndFro(
  { benchCase, targets: measured }: CaseResult,
  targets: readonly Target[],
  bench: Bench,
): Promise<void> {
  for (const inTurn of [targets, targets.toReversed()]) {
    for (const target of inTurn) {
      const measurement = await tryMeasure(benchCase, target, bench);
      measured.set(target.name, [...(measured.get(target.name) ?? []), measurement]);
    }
  }
}

/** Starts a target and sees that its answers are whole; undefined, with a line that says why, when it cannot be. */
async function startTarget(
  kind: TargetKind,
  { base, isEnding }: Bench,
  folder: string,
  concurrency?: number,
): Promise<Target | undefined> {
  let target: Target | undefined;
  try {
    const directory = join(base.directory, folder);
    mkdirSync(directory, { recursive: true });
    target = await kind.start({ ...base, directory, ...(concurrency !== undefined && { concurrency }) });
    await checkAnswers(target, benchText(50), kind.unsupportedCases);
    return target;
  } catch (error) {
    if (isEnding()) throw error;
    if (error instanceof NotInstallable) notInstallable.add(kind);
    console.error(`${kind.name} is left out: ${error instanceof Error ? error.message : error}`);
    await target?.close();
    return undefined;
  }
}

/** One window of a case; undefined, with a line that says why, if it could not be measured. */
async function tryMeasure(
  benchCase: BenchCase,
  target: Target,
  { times, base, isEnding }: Bench,
): Promise<Measurement | undefined> {
  try {
    const measurement = await measure(benchCase, target, times, base.directory);
    const failures = Object.entries(measurement.failures).map(([failure, count]) => `${count} × ${failure}`);
    const rate = `${Math.round(measurement.rate).toLocaleString('en-US')} ${benchCase.unit}s/s`;
    console.error(`  ${benchCase.name}, ${target.name}: ${[rate, ...failures].join(', ')}`);
    return measurement;
  } catch (error) {
    if (isEnding()) throw error;
    console.error(
      `  ${benchCase.name}, ${target.name}: not measured: ${error instanceof Error ? error.message : error}`,
    );
    return undefined;
  }
}
