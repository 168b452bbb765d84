import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { held } from '../../support/chat-requests.ts';
import { eventually } from '../../support/eventually.ts';
import { freePort } from '../../support/free-port.ts';
import { TestGateway } from '../../support/gateway.ts';
import { MetricsPage, type PageMetric } from '../../support/metrics-page.ts';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const page = readFileSync(join(root, 'docs/metrics.md'), 'utf8');

/** A row of the tables of docs/metrics.md. */
interface DocumentedMetric {
  readonly name: string;
  readonly type: string;
  readonly labels: readonly string[];
  readonly help: string;
}

function documentedUnder(heading: string): DocumentedMetric[] {
  const [, section = ''] = page.split(`\n## ${heading}\n`);
  const [table = ''] = section.split('\n## ');
  return [...table.matchAll(/^\| `(sluice_\w+)` \| (\w+) \| (.*?) \| (.*) \|$/gm)].map(
    ([, name, type, labels, help]) => ({
      name: name as string,
      type: type as string,
      labels: (labels as string).match(/\w+/g) ?? [],
      help: help as string,
    }),
  );
}

/** Labels that Prometheus and every process add. */
const everywhere = new Set(['role', 'le', 'instance', 'job']);

describe('docs/metrics.md, rules and dashboards', () => {
  let gateway: TestGateway;
  let api: PageMetric[];
  let worker: PageMetric[];
  before(async () => {
    gateway = await TestGateway.start({ workers: 0 });
    const port = await freePort();
    await gateway.startWorker({ WORKER_PORT: String(port) });
    await gateway.client().chat.completions.create(held('Hi'));
    await eventually(async () => {
      const { metrics } = await MetricsPage.read(`http://127.0.0.1:${port}`);
      assert.ok(
        metrics.find(({ name }) => name === 'sluice_tokens_total')?.labels.has('model'),
        'no tokens are counted',
      );
      worker = metrics;
    });
    ({ metrics: api } = await MetricsPage.read(gateway.url));
  });
  after(() => gateway.stop());

  it('docs/metrics.md has every metric of api and worker with its type and help, and no other', () => {
    const shared = documentedUnder('Every process');
    for (const [heading, metrics] of [
      ['Api processes', api],
      ['Workers', worker],
    ] as const) {
      const rows = [...shared, ...documentedUnder(heading)].sort((one, other) => (one.name < other.name ? -1 : 1));
      const live = [...metrics].sort((one, other) => (one.name < other.name ? -1 : 1));
      assert.ok(live.length > 15);
      assert.deepEqual(
        rows.map(({ name, type, help }) => ({ name, type, help })),
        live.map(({ name, type, help }) => ({ name, type, help })),
      );
      for (const { name, labels } of live) {
        const row = rows.find((each) => each.name === name);
        assert.deepEqual(
          [...labels].filter((label) => !row?.labels.includes(label)),
          [],
          name,
        );
      }
    }
  });

  it('an api that has swept nothing shows each action that the alert on abandoned jobs selects, so that all at once are an increase', async () => {
    const rules = readFileSync(join(root, 'deploy/prometheus/sluice-causes.yml'), 'utf8');
    const [, selected = ''] = /sluice_jobs_swept_total\{action=~"([^"]+)"\}/.exec(rules) ?? [];
    const shown = (await MetricsPage.read(gateway.url)).values('sluice_jobs_swept_total', 'action');
    assert.ok(selected.split('|').length > 3);
    assert.deepEqual(
      selected.split('|').filter((action) => !shown.includes(action)),
      [],
    );
  });

  it('every metric that a rule or a dashboard names is in a live scrape, with the labels that it selects by', () => {
    const files = ['deploy/prometheus', 'deploy/grafana'].flatMap((folder) =>
      readdirSync(join(root, folder))
        .filter((name) => /\.(ya?ml|json)$/.test(name))
        .map((name) => join(folder, name)),
    );
    assert.ok(files.length >= 3, files.join());
    const documented = ['Every process', 'Api processes', 'Workers'].flatMap(documentedUnder);
    const live = new Set([...api, ...worker].map(({ name }) => name));
    const unknown: string[] = [];
    const texts = new Map(files.map((file) => [file, readFileSync(join(root, file), 'utf8').replaceAll('\\"', '"')]));
    const recorded = [...texts.values()].flatMap((text) => text.match(/(?<=^ +- record: )\S+/gm) ?? []);
    let selectors = 0;
    for (const [file, text] of texts) {
      for (const name of text.match(/\bsluice:\w+:\w+/g) ?? [])
        if (!recorded.includes(name)) unknown.push(`${file}: ${name}`);
      for (const [, full = '', selector = ''] of text.matchAll(/\b(sluice_[a-z_]+)(?:\{([^{}]*)\})?/g)) {
        const name = live.has(full) ? full : full.replace(/_(bucket|sum|count)$/, '');
        const row = documented.find((each) => each.name === name);
        if (!live.has(name) || row === undefined) unknown.push(`${file}: ${full}`);
        for (const [, label = ''] of selector.matchAll(/(\w+)\s*(?:=~|!~|!=|=)/g)) {
          selectors++;
          if (!row?.labels.includes(label) && !everywhere.has(label)) unknown.push(`${file}: ${full}{${label}}`);
        }
      }
    }
    assert.ok(selectors > 20);
    assert.deepEqual(unknown, []);
  });
});
