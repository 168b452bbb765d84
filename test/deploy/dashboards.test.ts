import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { parse, stringify } from 'yaml';
import { dashboardFiles } from '../../deploy/grafana/dashboards.ts';
import { held, streamed } from '../support/chat-requests.ts';
import { eventually } from '../support/eventually.ts';
import { sendJson, startFixtureVendor } from '../vendors/contracts/fixture-vendor.ts';
import { errorBody } from '../vendors/recorded/recorded-openai.ts';
import { deployedRules } from './drills/drill-rules.ts';
import { Stage } from './drills/stage.ts';

/** A panel as the files in deploy/grafana have it. */
interface PanelJson {
  readonly title: string;
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[];
}

interface PanelQuery {
  readonly panel: string;
  readonly expr: string;
  /** Names of labels that the legend shows. */
  readonly labels: readonly string[];
}

async function readQueries(): Promise<PanelQuery[]> {
  const found: PanelQuery[] = [];
  for (const name of Object.keys(dashboardFiles)) {
    const path = fileURLToPath(new URL(`../../deploy/grafana/${name}`, import.meta.url));
    const { panels } = JSON.parse(await readFile(path, 'utf8')) as { panels: readonly PanelJson[] };
    for (const { title, targets = [] } of panels) {
      for (const { expr, legendFormat } of targets) {
        const labels = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label]) => label as string);
        // Grafana's own variable.
        found.push({ panel: `${name}: ${title}`, expr: expr.replaceAll('$__rate_interval', '1m'), labels });
      }
    }
  }
  return found;
}

/** The rules as deployed, evaluated each second. */
async function writeQuickRules(folder: string): Promise<string[]> {
  return await Promise.all(
    deployedRules.map(async (path) => {
      const { groups } = parse(await readFile(path, 'utf8')) as { groups: { interval: string }[] };
      const file = join(folder, basename(path));
      await writeFile(file, stringify({ groups: groups.map((group) => ({ ...group, interval: '1s' })) }));
      return file;
    }),
  );
}

describe('dashboards on a running gateway', () => {
  let folder: string;
  const stage = new Stage();
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sluice-test-dashboards-'));
    const broken = await startFixtureVendor();
    stage.use(() => broken.close());
    broken.answer((response) => sendJson(response, 500, errorBody('no', 'overloaded')));
    await stage.openGateway({
      configuration: {
        vendors: { broken: { like: 'openai', base_url: broken.baseUrl, api_key: 'a-key' } },
        models: { broken: { capability: 'chat', routes: [{ vendor: 'broken', model: 'm' }] } },
        routing: { attempts: 2 },
      },
    });
    await stage.startApi();
    await stage.startWorker();
    await stage.watch(await writeQuickRules(folder), '1s');
  });
  after(async () => {
    await stage.close();
    await rm(folder, { recursive: true, force: true });
  });

  test('every query of every panel returns a number from a gateway at work, with the labels that its legend shows', async () => {
    const queries = await readQueries();
    assert.ok(queries.length > 40);
    stage.repeat(10, () => stage.ask());
    stage.repeat(5, () => stage.ask(streamed('Hi')));
    stage.repeat(5, () => stage.ask(held('Hi', { model: 'broken' })));
    let missing = queries;
    await eventually(async () => {
      const still: PanelQuery[] = [];
      for (const query of missing) {
        const samples = await stage.prometheus.query(query.expr);
        const isThere = samples.some(
          ({ metric, value }) => !Number.isNaN(value) && query.labels.every((label) => metric[label] !== undefined),
        );
        if (!isThere) still.push(query);
      }
      missing = still;
      assert.deepEqual(missing, []);
    }, 60_000);
  });
});
