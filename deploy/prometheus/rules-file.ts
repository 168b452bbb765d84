import { stringify } from 'yaml';
import { causeAlerts, causeRules } from './causes.ts';
import { burnAlerts, objectiveRules } from './objectives.ts';
import type { AlertRule, RecordingRule } from './rule.ts';

/** Where the runbook is: the project has no public address, so the link is its path. */
const runbook = 'docs/runbook.md';

/** An alert as Prometheus reads it. */
function written({ alert, expr, for: duration, severity, summary }: AlertRule): object {
  return {
    alert,
    expr,
    ...(duration !== undefined && { for: duration }),
    labels: { severity },
    annotations: { summary, runbook_url: `${runbook}#${alert.toLowerCase()}` },
  };
}

/** The files of rules for Prometheus, by their names. */
export const rulesFiles: Readonly<Record<string, () => string>> = {
  'sluice-objectives.yml': () => rulesFile('sluice-objectives', '30s', objectiveRules, burnAlerts),
  'sluice-causes.yml': () => rulesFile('sluice-causes', '15s', causeRules, causeAlerts),
};

function rulesFile(
  name: string,
  interval: string,
  recorded: readonly RecordingRule[],
  alerts: readonly AlertRule[],
): string {
  const head = [
    '# Recording rules and alerts for Prometheus. Made by `npm run documents` from the files beside it.',
    '# Scrape jobs are to be named `sluice…`, such as sluice-api and sluice-worker. docs/runbook.md says what to do about each alert.',
  ];
  const groups = [{ name, interval, rules: [...recorded, ...alerts.map(written)] }];
  return `${head.join('\n')}\n${stringify({ groups }, { lineWidth: 0 })}`;
}
