/** Figures → tables, ratios and bars, as Markdown. */
import type { CaseName } from './case-name.ts';
import { type BenchCase, type Measurement, openStreams, type ProcessUsage } from './cases.ts';
import { median } from './statistics.ts';
import type { TranslationFigure } from './translation.ts';

/** The measurements of one case: by target, one per round (undefined where it could not be measured). */
export interface CaseResult {
  benchCase: BenchCase;
  targets: Map<string, (Measurement | undefined)[]>;
}

interface Bar {
  title: string;
  case: CaseName;
  /** The case of the baseline's measurement, where it is another. */
  calmCase?: CaseName;
  baseline: string | undefined;
  /** What is compared, of the product's measurement and the baseline's in the same round. */
  value(product: Measurement, baseline: Measurement): number;
  bound: 'at least' | 'at most';
  limit: number;
  unit: string;
}

const megabyte = 1_000_000;

/** Microseconds of CPU per unit, all processes of the target together. */
function cpu({ processes }: Measurement): number {
  return processes.reduce((sum, process) => sum + process.cpu, 0);
}

/** Rate and CPU of a case over Portkey's: the bars of most cases. */
function overPortkey(name: CaseName, what: string, least: number, mostCpu?: number): Bar[] {
  const rate: Bar = {
    title: `${what}: rate over Portkey's`,
    case: name,
    baseline: 'portkey',
    value: (product, baseline) => product.rate / baseline.rate,
    bound: 'at least',
    limit: least,
    unit: '×',
  };
  if (mostCpu === undefined) return [rate];
  const value: Bar['value'] = (product, baseline) => cpu(product) / cpu(baseline);
  return [rate, { ...rate, title: `${what}: CPU over Portkey's`, value, bound: 'at most', limit: mostCpu }];
}

const pacedBar = { case: 'paced', bound: 'at most' } as const;
const singleBar = { case: 'single', bound: 'at most' } as const;

const bars: readonly Bar[] = [
  ...overPortkey('held', 'Held JSON', 3, 0.4),
  ...overPortkey('streams', 'Streams of 50 tokens', 3, 0.45),
  ...overPortkey('large', '300 KB prompts, held', 2, 0.5),
  ...overPortkey('large-streams', '300 KB prompts, streamed', 2, 0.5),
  ...overPortkey('embeddings', 'Embeddings', 2.5),
  ...overPortkey('images', 'Images', 4),
  {
    title: "Beside 300 KB prompts: a small request's p50 over its calm one",
    case: 'neighbour',
    calmCase: 'single',
    baseline: undefined,
    value: (product, calm) => product.p50 / calm.p50,
    bound: 'at most',
    limit: 3,
    unit: '×',
  },
  {
    title: "Paced: CPU a token over Portkey's",
    ...pacedBar,
    baseline: 'portkey',
    value: (product, baseline) => cpu(product) / cpu(baseline),
    limit: 0.7,
    unit: '×',
  },
  {
    title: "Paced: CPU a token over the plain proxy's",
    ...pacedBar,
    baseline: 'proxy',
    value: (product, baseline) => cpu(product) / cpu(baseline),
    limit: 1,
    unit: '×',
  },
  {
    title: 'Paced: median gap between two tokens',
    ...pacedBar,
    baseline: undefined,
    value: ({ p50 }) => p50,
    limit: 22,
    unit: ' ms',
  },
  {
    title: "Paced: p99 of the gap over Portkey's",
    ...pacedBar,
    baseline: 'portkey',
    value: (product, baseline) => product.p99 / baseline.p99,
    limit: 1,
    unit: '×',
  },
  {
    title: "One connection: p50 above the plain proxy's",
    ...singleBar,
    baseline: 'proxy',
    value: (product, baseline) => product.p50 - baseline.p50,
    limit: 0.5,
    unit: ' ms',
  },
  {
    title: "One connection: p50 over Portkey's",
    ...singleBar,
    baseline: 'portkey',
    value: (product, baseline) => product.p50 / baseline.p50,
    limit: 0.8,
    unit: '×',
  },
  {
    title: "CPU per held request over the earlier build's",
    case: 'held',
    baseline: 'before',
    value: (product, baseline) => cpu(product) / cpu(baseline),
    bound: 'at most',
    limit: 1.03,
    unit: '×',
  },
  {
    title: "CPU per 50-token stream over the earlier build's",
    case: 'streams',
    baseline: 'before',
    value: (product, baseline) => cpu(product) / cpu(baseline),
    bound: 'at most',
    limit: 1.03,
    unit: '×',
  },
  {
    title: 'Ingress, most memory resident with 5,000 open streams',
    case: 'open',
    baseline: undefined,
    value: ({ open, processes }) =>
      open === openStreams ? (processes[0]?.residentPeak ?? Number.NaN) / megabyte : Number.NaN,
    bound: 'at most',
    limit: 300,
    unit: ' MB',
  },
];

/** Digits by size: figures are read beside each other, and three places are what the noise leaves. */
function figure(value: number): string {
  if (Number.isNaN(value)) return '-';
  if (Math.abs(value) >= 100) return Math.round(value).toLocaleString('en-US');
  return value.toFixed(Math.abs(value) >= 10 ? 1 : 2);
}

function table(rows: string[][]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const lines = rows.map((row) => {
    const cells = row.map((cell, column) =>
      column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0),
    );
    return `| ${cells.join(' | ')} |`;
  });
  const rule = widths.map((width, column) => (column === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`));
  lines.splice(1, 0, `| ${rule.join(' | ')} |`);
  return lines.join('\n');
}

function middle(measurements: readonly Measurement[], value: (measurement: Measurement) => number): number {
  return median(measurements.map(value));
}

function present(rounds: readonly (Measurement | undefined)[]): Measurement[] {
  return rounds.filter((round) => round !== undefined);
}

function perProcess(measurements: readonly Measurement[], value: (index: number) => number): string {
  const names = measurements[0]?.processes.map((process) => process.name) ?? [];
  if (names.length < 2) return '';
  return names.map((name, index) => `${name} ${figure(value(index))}`).join(', ');
}

function speedTable({ benchCase, targets }: CaseResult): string {
  const time = benchCase.unit === 'token' ? 'gap ' : '';
  const rows = [
    [
      'target',
      `${benchCase.unit}s/s`,
      `${time}p50 ms`,
      `${time}p99 ms`,
      `CPU µs/${benchCase.cpuUnit ?? benchCase.unit}`,
      'of it',
      'failed',
    ],
  ];
  for (const [name, rounds] of targets) {
    const measurements = present(rounds);
    if (measurements.length === 0) continue;
    rows.push([
      name,
      figure(middle(measurements, (each) => each.rate)),
      figure(middle(measurements, (each) => each.p50)),
      figure(middle(measurements, (each) => each.p99)),
      figure(middle(measurements, cpu)),
      perProcess(measurements, (index) => middle(measurements, (each) => each.processes[index]?.cpu ?? Number.NaN)),
      String(measurements.reduce((sum, each) => sum + each.failed, 0)),
    ]);
  }
  return table(rows);
}

function memoryTable({ targets }: CaseResult): string {
  const rows = [
    ['target', 'process', 'streams open', 'MB before', 'MB with them', 'MB at most', 'KB per stream', 'failed'],
  ];
  for (const [name, rounds] of targets) {
    for (const measurement of present(rounds)) {
      const { processes } = measurement;
      const sum = (value: (process: ProcessUsage) => number) =>
        processes.reduce((total, each) => total + value(each), 0);
      const all: ProcessUsage = {
        name: 'all',
        cpu: cpu(measurement),
        residentBefore: sum((each) => each.residentBefore),
        resident: sum((each) => each.resident),
        residentPeak: sum((each) => each.residentPeak),
      };
      for (const process of processes.length > 1 ? [...processes, all] : processes) {
        rows.push([
          name,
          process.name,
          figure(measurement.open),
          figure(process.residentBefore / megabyte),
          figure(process.resident / megabyte),
          figure(process.residentPeak / megabyte),
          figure((process.resident - process.residentBefore) / measurement.open / 1000),
          String(measurement.failed),
        ]);
      }
    }
  }
  return table(rows);
}

/** Values of both in the same round, so that what slowed the machine slowed both. */
function paired(
  result: CaseResult,
  product: string,
  baseline: string,
  value: (product: Measurement, baseline: Measurement) => number,
  baselineResult: CaseResult = result,
): number {
  const others = baselineResult.targets.get(baseline) ?? [];
  const values = (result.targets.get(product) ?? []).map((measurement, round) => {
    const other = others[round];
    return measurement && other ? value(measurement, other) : Number.NaN;
  });
  return median(values);
}

function ratioTable(results: readonly CaseResult[], product: string, baselines: readonly string[]): string {
  const rows = [['case', 'baseline', 'rate, times', 'p50, ms more', 'p99, ms more', 'CPU per unit, times']];
  for (const result of results) {
    if (result.benchCase.memory) continue;
    for (const baseline of baselines) {
      const ratio = paired(result, product, baseline, (mine, other) => mine.rate / other.rate);
      if (Number.isNaN(ratio)) continue;
      rows.push([
        result.benchCase.title,
        baseline,
        figure(ratio),
        figure(paired(result, product, baseline, (mine, other) => mine.p50 - other.p50)),
        figure(paired(result, product, baseline, (mine, other) => mine.p99 - other.p99)),
        figure(paired(result, product, baseline, (mine, other) => cpu(mine) / cpu(other))),
      ]);
    }
  }
  return rows.length > 1 ? table(rows) : 'The product was not measured beside a baseline.';
}

function barTable(results: readonly CaseResult[], product: string): string {
  const rows = [['bar', 'wanted', 'measured', 'met']];
  for (const bar of bars) {
    const result = results.find((each) => each.benchCase.name === bar.case);
    // Most runs have no earlier build beside them.
    if (bar.baseline === 'before' && !result?.targets.has('before')) continue;
    const calm = results.find((each) => each.benchCase.name === (bar.calmCase ?? bar.case));
    const value = result && calm ? paired(result, product, bar.baseline ?? product, bar.value, calm) : Number.NaN;
    const met = bar.bound === 'at least' ? value >= bar.limit : value <= bar.limit;
    rows.push([
      bar.title,
      `${bar.bound} ${bar.limit}${bar.unit}`,
      Number.isNaN(value) ? 'not measured' : `${figure(value)}${bar.unit}`,
      Number.isNaN(value) ? '-' : met ? 'yes' : 'NO',
    ]);
  }
  return table(rows);
}

/** The tables of one case, titled. */
export function caseReport(result: CaseResult): string {
  return `## ${result.benchCase.title}\n\n${result.benchCase.memory ? memoryTable(result) : speedTable(result)}`;
}

/** The most that a chunk of a translated dialect may cost, over the raw one's. */
const translationLimit = 2;

/** What a streamed chunk costs in each dialect. */
export function translationReport(figures: readonly TranslationFigure[]): string {
  const rows = figures.map(({ name, cpu: own, ratio }) => {
    const bar =
      name === 'openai' ? ['', ''] : [`at most ${translationLimit}×`, ratio <= translationLimit ? 'yes' : 'NO'];
    return [name, figure(own), `${figure(ratio)}×`, ...bar];
  });
  return `## Translation of one streamed chunk, the adapters alone\n\n${table([['dialect', 'CPU µs/chunk', "over the raw dialect's", 'wanted', 'met'], ...rows])}`;
}

/** The ratios of the product to each baseline, and the bars. */
export function comparisonReport(
  results: readonly CaseResult[],
  product: string,
  baselines: readonly string[],
): string {
  const ratios = `## ${product} against each baseline\n\n${ratioTable(results, product, baselines)}`;
  return `${ratios}\n\n## Bars\n\n${barTable(results, product)}`;
}
