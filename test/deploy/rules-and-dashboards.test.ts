import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { parse, stringify } from 'yaml';
import { dashboardFiles } from '../../deploy/grafana/dashboards.ts';
import { rulesFiles } from '../../deploy/prometheus/rules-file.ts';
import { type AlertCase, alertCases } from './alert-cases.ts';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../../', import.meta.url));
const rulesPaths = Object.keys(rulesFiles).map((name) => join(root, 'deploy/prometheus', name));

interface Rule {
  readonly alert?: string;
  readonly expr: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

/** promtool comes with Debian's prometheus, which .ci/run installs. @throws its complaint */
async function promtool(...args: readonly string[]): Promise<string> {
  try {
    // It makes a database for each case, and collects garbage for most of its time.
    const { stdout } = await run('promtool', [...args], { env: { ...process.env, GOGC: '400' } });
    return stdout;
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
    throw new Error(`promtool ${args.join(' ')}: ${stdout}${stderr || error}`);
  }
}

/** An alert, and the file that it is in. */
interface Alert extends Rule {
  readonly alert: string;
  readonly path: string;
}

async function readAlerts(path: string): Promise<Alert[]> {
  const { groups } = parse(await readFile(path, 'utf8')) as { groups: { rules: Rule[] }[] };
  return groups.flatMap(({ rules }) =>
    rules.flatMap((rule) => (rule.alert ? [{ ...rule, alert: rule.alert, path }] : [])),
  );
}

describe('rules and dashboards in deploy', () => {
  let folder: string;
  let alerts: Alert[];
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sluice-test-rules-'));
    alerts = (await Promise.all(rulesPaths.map(readAlerts))).flat();
  });
  after(() => rm(folder, { recursive: true, force: true }));

  /**
   * Has promtool evaluate each alert at the time of its case. Long cases are evaluated in longer steps.
   * @param name as which Prometheus keeps a series: then cases in which it keeps all of them as they are written are left out
   */
  async function test(which: 'fires' | 'silent', name?: (series: string) => string): Promise<void> {
    const batches = new Map<string, object[]>();
    for (const { alert, path, labels, annotations } of alerts) {
      const { interval = '1m', at = '20m', labels: own = {}, ...series } = alertCases[alert] as AlertCase;
      const kept = Object.keys(series[which]).map((written) => name?.(written) ?? written);
      if (name !== undefined && kept.every((each) => each in series[which])) continue;
      const expected = { exp_labels: { ...labels, ...own }, exp_annotations: annotations };
      const batch = batches.get(`${path} ${interval}`) ?? [];
      batches.set(`${path} ${interval}`, batch);
      batch.push({
        interval,
        input_series: Object.values(series[which]).map((values, at) => ({ series: kept[at], values })),
        alert_rule_test: [{ eval_time: at, alertname: alert, exp_alerts: which === 'fires' ? [expected] : [] }],
      });
    }
    assert.ok(batches.size > 1);
    for (const [index, [batch, tests]] of [...batches].entries()) {
      const [rules, interval] = batch.split(' ');
      const path = join(folder, `${which}-${index}.yml`);
      await writeFile(path, stringify({ rule_files: [rules], evaluation_interval: interval, tests }));
      assert.match(await promtool('test', 'rules', path), /SUCCESS/);
    }
  }

  it('promtool accepts the rules', async () => {
    for (const path of rulesPaths) assert.match(await promtool('check', 'rules', path), /SUCCESS: \d\d rules found/);
  });

  it('promtool accepts every expression of the dashboards', async () => {
    const expressions: string[] = [];
    for (const name of Object.keys(dashboardFiles)) {
      const dashboard = JSON.parse(await readFile(join(root, 'deploy/grafana', name), 'utf8')) as {
        panels: { targets?: { expr: string }[] }[];
      };
      for (const { targets = [] } of dashboard.panels) expressions.push(...targets.map(({ expr }) => expr));
    }
    assert.ok(expressions.length > 40);
    // What a panel asks for is a rule with a name, except for Grafana's own variable.
    const rules = expressions.map((expr, index) => ({
      record: `panel:${index}`,
      expr: expr.replaceAll('$__rate_interval', '1m'),
    }));
    const path = join(folder, 'panels.yml');
    await writeFile(path, stringify({ groups: [{ name: 'panels', rules }] }));
    assert.match(await promtool('check', 'rules', path), new RegExp(`SUCCESS: ${rules.length} rules found`));
  });

  it('each alert has a case in which it fires and one in which it does not', () => {
    assert.deepEqual(Object.keys(alertCases).sort(), alerts.map(({ alert }) => alert).sort());
  });

  it('each alert fires in its case, with its labels and its link to the runbook', async () => test('fires'));

  it('each alert is silent in a case near its threshold', async () => test('silent'));

  it('each alert fires, and is silent, in the same cases with the bounds of buckets as Prometheus 3 keeps them', async () => {
    await test('fires', asPrometheus3);
    await test('silent', asPrometheus3);
  });

  it("promtool accepts the runbook's prometheus.yml, whose jobs send the token that workers want", async () => {
    const runbook = await readFile(join(root, 'docs/runbook.md'), 'utf8');
    const [, config = ''] = /^```yaml\n(# prometheus\.yml[\s\S]*?)^```$/m.exec(runbook) ?? [];
    const { scrape_configs: jobs } = parse(config) as { scrape_configs: { authorization?: object }[] };
    assert.ok(jobs.length === 2 && jobs.every(({ authorization }) => authorization !== undefined));
    for (const path of rulesPaths) await copyFile(path, join(folder, basename(path)));
    await writeFile(join(folder, 'metrics-token'), 'a-token');
    const path = join(folder, 'prometheus.yml');
    await writeFile(path, config);
    assert.match(await promtool('check', 'config', path), /SUCCESS/);
  });

  it('each alert has a heading of its own in the runbook that its link leads to, with a command to run', async () => {
    const runbook = await readFile(join(root, 'docs/runbook.md'), 'utf8');
    const sections = new Map(
      runbook.split(/^## /m).map((section) => [section.slice(0, section.indexOf('\n')), section] as const),
    );
    for (const { alert, annotations, labels } of alerts) {
      assert.equal(annotations?.runbook_url, `docs/runbook.md#${alert.toLowerCase()}`);
      assert.ok(['page', 'ticket'].includes(labels?.severity ?? ''));
      assert.match(sections.get(alert) ?? '', /^```sh\n\S[\s\S]*?^```$/m, alert);
    }
    const known = new Set(alerts.map(({ alert }) => alert));
    assert.deepEqual(
      [...sections.keys()].filter((name) => name.startsWith('Sluice') && !known.has(name)),
      [],
    );
  });
});

/** Prometheus 3 keeps every bound of a bucket as a number with a fraction: https://prometheus.io/docs/prometheus/3.0/migration/ */
function asPrometheus3(series: string): string {
  return series.replace(/le="(\d+)"/, 'le="$1.0"');
}
