import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { stringify } from 'yaml';
import { deployedRules } from './drill-rules.ts';
import type { ScrapedTarget } from './stage.ts';

const run = promisify(execFile);

/** Minutes of each part of a timeline. The fault lasts longer than each `for`, what follows longer than each window that ends an alert. */
const lengths = { calm: 10, fault: 70, after: 200 };

/** What all targets show at one moment: values by series. */
export interface Page {
  readonly at: number;
  readonly samples: ReadonlyMap<string, number>;
}

/** The pages of a drill: one before the fault, those within it, and the last two after it. */
export interface Recording {
  readonly calm: Page;
  readonly fault: readonly Page[];
  readonly after: readonly Page[];
}

const rules = (await Promise.all(deployedRules.map((path) => readFile(path, 'utf8')))).join('\n');
/** Metrics that the deployed rules ask for, and those of which they want the growth. */
const askedNames = new Set(rules.match(/\b(?:sluice|process)_\w+/g));
const grownNames = new Set(Array.from(rules.matchAll(/\b(?:rate|increase)\((\w+)/g), ([, name = '']) => name));

/** Scrapes each target once, as Prometheus does: one that does not answer has no series but `up`. */
export async function scrape(targets: readonly ScrapedTarget[]): Promise<Page> {
  const samples = new Map<string, number>();
  await Promise.all(
    targets.map(async ({ job, address }) => {
      const own = `job="${job}",instance="${address}"`;
      const text = await fetch(`http://${address}/metrics`, { signal: AbortSignal.timeout(10_000) })
        .then((answer) => (answer.ok ? answer.text() : undefined))
        .catch(() => undefined);
      samples.set(`up{${own}}`, text === undefined ? 0 : 1);
      for (const [series, value] of readPage(text ?? '')) samples.set(series.replace('{', `{${own},`), value);
    }),
  );
  return { at: Date.now(), samples };
}

function* readPage(text: string): Generator<[series: string, value: number]> {
  for (const [, name = '', labels = '{}', value] of text.matchAll(/^(\w+)(\{.*\})? (\S+)$/gm)) {
    if (askedNames.has(name)) yield [name + labels, Number(value)];
  }
}

/** A value as promtool reads it; `_`: there is none. */
const written = (value: number | undefined): string =>
  value === undefined ? '_' : String(value).replace('Infinity', 'Inf');

/**
 * Values of a series, one a minute. What has grown goes on at the same rate for as long as a part lasts, and all else stays as it was at
 * the part's end; when a process began is shown in turns, as each page of the fault has it.
 */
function valuesOf(series: string, { calm, fault, after }: Recording): string[] {
  const of = (page: Page | undefined) => page?.samples.get(series);
  const [last, ended] = [fault.at(-1), after.at(-1)];
  const [name = ''] = series.split('{');
  if (grownNames.has(name)) {
    return grown(
      [of(calm), of(last), of(after[0]), of(ended)],
      [minutesBetween(calm, last), minutesBetween(after[0], ended)],
    );
  }
  const pages = name === 'process_start_time_seconds' ? fault : fault.slice(-1);
  const inFault = Array.from({ length: lengths.fault }, (_, minute) => of(pages[minute % pages.length]));
  return [
    ...Array<string>(lengths.calm).fill(written(of(calm))),
    ...inFault.map(written),
    ...Array<string>(lengths.after).fill(written(of(ended))),
  ];
}

const minutesBetween = (one: Page | undefined, other: Page | undefined): number =>
  Math.max(1, (other?.at ?? 0) - (one?.at ?? 0)) / 60_000;

function grown(
  [calm, last, first, ended]: readonly (number | undefined)[],
  [faultMinutes = 1, afterMinutes = 1]: readonly number[],
): string[] {
  const growing = (from: number, gained: number, minutes: number): string[] =>
    Array.from({ length: minutes }, (_, minute) => written(from + gained * (minute + 1)));
  const none = (minutes: number): string[] => Array<string>(minutes).fill(written(undefined));
  const gain = Math.max(0, (last ?? 0) - (calm ?? 0)) / faultMinutes;
  const top = (calm ?? 0) + gain * lengths.fault;
  // A process that has begun anew counts from nothing; one that went on, from where the fault has ended.
  const isSame = last !== undefined && first !== undefined && first >= last;
  const from = isSame ? top + first - last : (first ?? 0);
  const more = Math.max(0, (ended ?? 0) - (first ?? 0)) / afterMinutes;
  return [
    ...Array<string>(lengths.calm).fill(written(calm)),
    ...(last === undefined ? none(lengths.fault) : growing(calm ?? 0, gain, lengths.fault)),
    ...(ended === undefined ? none(lengths.after) : growing(from, more, lengths.after)),
  ];
}

/** Which of the alerts do not fire at the end of the fault, and which still do at the end of the timeline: promtool's words, '' for none. */
export interface Verdict {
  readonly fault: string;
  readonly after: string;
}

/** Has promtool evaluate the deployed rules over a recording. @param folder for its file */
export async function evaluate(recording: Recording, alerts: readonly string[], folder: string): Promise<Verdict> {
  const { calm, fault, after } = recording;
  const all = new Set([calm, ...fault, ...after].flatMap(({ samples }) => [...samples.keys()]));
  const series = Array.from(all, (name) => ({ series: name, values: valuesOf(name, recording).join(' ') }));
  const ask = async (minute: number, firing: readonly string[]): Promise<string> => {
    const expr = `max by (alertname) (ALERTS{alertstate="firing",alertname=~"${alerts.join('|')}"})`;
    const expected = firing.map((name) => ({ labels: `{alertname="${name}"}`, value: 1 }));
    const test = { interval: '1m', input_series: series };
    const asked = { expr, eval_time: `${minute}m`, exp_samples: expected };
    const path = join(folder, `timeline-${minute}.yml`);
    const tests = [{ ...test, promql_expr_test: [asked] }];
    await writeFile(path, stringify({ rule_files: deployedRules, evaluation_interval: '1m', tests }));
    return await run('promtool', ['test', 'rules', path], { env: { ...process.env, GOGC: '400' } }).then(
      () => '',
      ({ stdout, stderr }: { stdout: string; stderr: string }) => `${stderr}${stdout}`,
    );
  };
  const end = lengths.calm + lengths.fault;
  const inFault = await ask(end - 1, alerts);
  return { fault: inFault, after: after.length < 2 ? 'not over' : await ask(end + lengths.after - 1, []) };
}
