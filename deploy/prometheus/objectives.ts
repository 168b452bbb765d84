import { endpoints } from '../../api/endpoints/endpoints.ts';
import { errorTable } from '../../shared/errors.ts';
import type { AlertRule, RecordingRule } from './rule.ts';

/** Endpoints that make jobs. */
const job = selector(endpoints.map(({ name }) => name));
/** Errors of the gateway's or its vendors' making. */
const failures = selector(
  Object.entries(errorTable)
    .filter(([, { status }]) => status >= 500)
    .map(([code]) => code),
);

/** A regular expression for one of these names. Their dots need no escape: any character is a dot's only match among them. */
function selector(names: readonly string[]): string {
  return `=~"${names.join('|')}"`;
}

/** A service level objective: the share of good events among all of them. */
interface Objective {
  /** Part of its rules' names: `sluice:<name>:ratio_rate1h` is the share of bad events within an hour. */
  readonly name: string;
  readonly alert: string;
  readonly target: number;
  readonly summary: string;
  /** Rates of bad events and of all of them, over a window such as `1h`. */
  readonly bad: (window: string) => string;
  readonly all: (window: string) => string;
}

/** Selects a bucket: Prometheus writes its bound as the process does (`5`), and from version 3 on as `5.0`. */
const within = (seconds: number): string => `,le=~"${seconds}([.]0)?"`;

const firstToken = (suffix: string, window: string, more = ''): string =>
  `sum(rate(sluice_time_to_first_frame_seconds_${suffix}{stream="yes"${more}}[${window}]))`;
const queueWait = (suffix: string, window: string, more = ''): string =>
  `sum(rate(sluice_queue_wait_seconds_${suffix}{capability!="video"${more}}[${window}]))`;

const objectives: readonly Objective[] = [
  {
    name: 'failed_requests',
    alert: 'SluiceAvailabilityBurn',
    target: 0.999,
    summary: 'More requests fail than the objective allows: 99.9 % end without an error of the gateway or its vendors.',
    bad: (window) => `sum(rate(sluice_errors_total{endpoint${job},code${failures}}[${window}]))`,
    all: (window) => `sum(rate(sluice_requests_total{endpoint${job}}[${window}]))`,
  },
  {
    name: 'late_first_tokens',
    alert: 'SluiceFirstTokenBurn',
    target: 0.95,
    summary: 'More streams begin late than the objective allows: 95 % have their first token within 5 s.',
    bad: (window) => `${firstToken('count', window)} - ${firstToken('bucket', window, within(5))}`,
    all: (window) => firstToken('count', window),
  },
  {
    name: 'long_queue_waits',
    alert: 'SluiceQueueWaitBurn',
    target: 0.99,
    summary: 'More jobs wait long for a worker than the objective allows: 99 % wait at most 1 s.',
    bad: (window) => `${queueWait('count', window)} - ${queueWait('bucket', window, within(1))}`,
    all: (window) => queueWait('count', window),
  },
];

/** A pair of windows: both must burn the error budget of 30 days that many times too fast. */
interface BurnWindows {
  readonly speed: 'Fast' | 'Slow';
  readonly long: string;
  readonly short: string;
  /** Seconds of the long window. */
  readonly seconds: number;
  readonly factor: number;
}

/**
 * From the SRE Workbook, "Alerting on SLOs": 2 % of the budget in an hour and 5 % in six pages somebody, 10 % in a day is a
 * ticket. The short window ends the alert soon after the cause has ended.
 */
const burnWindows: readonly BurnWindows[] = [
  { speed: 'Fast', long: '1h', short: '5m', seconds: 3600, factor: 14.4 },
  { speed: 'Fast', long: '6h', short: '30m', seconds: 21_600, factor: 6 },
  { speed: 'Slow', long: '1d', short: '2h', seconds: 86_400, factor: 3 },
];

/** Bad events in the long window below which nobody is called: a few failures are a large share of a quiet hour. */
const minBadEvents = 10;

/** Shares of bad events over every window, and their rates over the long ones. */
export const objectiveRules: readonly RecordingRule[] = objectives.flatMap(({ name, bad, all }) => [
  ...burnWindows
    .flatMap(({ long, short }) => [short, long])
    .map((window) => ({
      record: `sluice:${name}:ratio_rate${window}`,
      expr: `(${bad(window)}) / ${all(window)}`,
    })),
  ...burnWindows.map(({ long }) => ({ record: `sluice:${name}:rate${long}`, expr: bad(long) })),
]);

/** Alerts on the speed at which error budgets are used. */
export const burnAlerts: readonly AlertRule[] = objectives.flatMap(({ name, alert, target, summary }) =>
  (['Fast', 'Slow'] as const).map((speed) => ({
    alert: `${alert}${speed}`,
    severity: speed === 'Fast' ? ('page' as const) : ('ticket' as const),
    summary,
    expr: burnWindows
      .filter((windows) => windows.speed === speed)
      .map(({ long, short, seconds, factor }) => {
        const limit = Number((factor * (1 - target)).toPrecision(6));
        const burns = [long, short].map((window) => `sluice:${name}:ratio_rate${window} > ${limit}`);
        return `(${burns.join(' and ')} and sluice:${name}:rate${long} * ${seconds} > ${minBadEvents})`;
      })
      .join(' or '),
  })),
);
