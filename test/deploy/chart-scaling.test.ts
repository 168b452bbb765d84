import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { chartValues, environmentOf, type KubernetesObject, renderChart } from '../support/helm-chart.ts';

const sets = await chartValues();
const rendered = new Map<string, KubernetesObject[]>();

before(async () => {
  for (const [name, path] of sets) rendered.set(name, await renderChart(path));
});

interface Trigger {
  readonly type: string;
  readonly name: string;
  readonly metricType: string;
  readonly metadata: Readonly<Record<string, string>>;
}

function scaledObjects(): [set: string, object: KubernetesObject][] {
  const found = [...rendered].flatMap(([set, objects]) =>
    objects.flatMap((object): [string, KubernetesObject][] => (object.kind === 'ScaledObject' ? [[set, object]] : [])),
  );
  assert.ok(found.length >= 7);
  return found;
}

/** The names of metrics that api and workers make. */
function knownMetrics(): ReadonlySet<string> {
  const root = fileURLToPath(new URL('../../', import.meta.url));
  const names = ['api', 'workers', 'shared'].flatMap((folder) =>
    readdirSync(`${root}${folder}`, { recursive: true, encoding: 'utf8' })
      .filter((path) => path.endsWith('.ts'))
      .flatMap((path) => readFileSync(`${root}${folder}/${path}`, 'utf8').match(/(?<=')sluice_[a-z_]+(?=')/g) ?? []),
  );
  return new Set(names);
}

/** Fields of KEDA's Prometheus trigger, whose schema takes any: https://keda.sh/docs/2.17/scalers/prometheus/ */
const triggerFields = new Set([
  ...['serverAddress', 'query', 'threshold', 'activationThreshold', 'ignoreNullValues', 'authModes'],
]);

describe('the scaling of the Helm chart', () => {
  test('the Helm chart asks only for metrics that exist, in scaling, alerts and dashboards', () => {
    const known = knownMetrics();
    assert.ok(known.size > 20);
    const texts = [...rendered.values()].flatMap((objects) =>
      objects
        .filter(({ kind }) => ['ScaledObject', 'PrometheusRule', 'ConfigMap'].includes(kind))
        .map((object) => JSON.stringify(object)),
    );
    const asked = new Set(texts.flatMap((text) => text.match(/\bsluice_[a-z_]+/g) ?? []));
    // Recording rules have colons, histograms their suffixes, and `sluice_` alone is a pattern.
    const unknown = [...asked].filter((name) => {
      const base = name.replace(/_(bucket|sum|count)$/, '');
      return (
        !known.has(name) && !known.has(base) && ![...known].some((each) => name.endsWith('_') && each.startsWith(name))
      );
    });
    assert.deepEqual(unknown, []);
    assert.ok(asked.has('sluice_queue_oldest_wait_seconds') && asked.has('sluice_queue_delayed'));
  });

  test("the Helm chart's triggers have fields that KEDA knows, averages, and a failure where there is no figure", () => {
    for (const [set, { metadata, spec }] of scaledObjects()) {
      const names = spec.triggers.map(({ name }: Trigger) => name);
      assert.deepEqual(names, [...new Set(names)], set);
      for (const { type, metricType, metadata: fields } of spec.triggers as Trigger[]) {
        const about = `${set}: ${metadata.name}: ${fields.query}`;
        // The fallback is for averages alone.
        assert.deepEqual([type, metricType, fields.ignoreNullValues], ['prometheus', 'AverageValue', 'false'], about);
        for (const field of Object.keys(fields)) assert.ok(triggerFields.has(field), field);
        assert.ok(Number(fields.threshold) >= 1, about);
        assert.equal(fields.activationThreshold, '0', about);
        // Every api tells the same: each figure is the maximum, never a sum. Without one the answer is empty.
        assert.equal(
          fields.query?.match(/max\(sluice_\w+\{[^}]+\} >= 0\)/g)?.length,
          fields.query?.match(/sluice_queue/g)?.length,
          about,
        );
      }
      assert.equal(spec.fallback.behavior, 'currentReplicasIfHigher');
      assert.ok(spec.fallback.replicas >= 1);
    }
  });

  test('the Helm chart scales each worker by the queues of its capabilities, and to less than its pods can run at a time', () => {
    for (const [set, object] of scaledObjects()) {
      const worker = rendered
        .get(set)
        ?.find(({ kind, metadata }) => kind === 'Deployment' && metadata.name === object.spec.scaleTargetRef.name);
      const environment = environmentOf(worker as KubernetesObject);
      const slots = environment.flatMap(({ name, value }) => {
        const [, capability] = /^WORKER_CONCURRENCY_(\w+)$/.exec(name) ?? [];
        return capability === undefined ? [] : [[capability.toLowerCase(), Number(value)] as const];
      });
      const loads = (object.spec.triggers as Trigger[]).filter(({ name }) => name.startsWith('load-'));
      assert.deepEqual(
        loads.map(({ name }) => name),
        slots.map(([capability]) => `load-${capability}`),
      );
      for (const [index, [capability, concurrency]] of slots.entries()) {
        const { query = '', threshold } = loads[index]?.metadata ?? {};
        const asked = new Set([...query.matchAll(/capability="(\w+)"/g)].map(([, name]) => name));
        assert.deepEqual([...asked], [capability], set);
        assert.ok(Number(threshold) < concurrency, `${set}: ${capability}`);
      }
    }
  });

  test('the Helm chart lets no last worker of videos go while a video is between two polls', () => {
    const videos = scaledObjects().filter(([, { metadata }]) => metadata.name.endsWith('-worker-video'));
    assert.ok(videos.length >= 2);
    for (const [set, { spec }] of videos) {
      assert.equal(spec.minReplicaCount, 0, set);
      const polls = (spec.triggers as Trigger[]).find(({ name }) => name === 'polls-video');
      assert.match(polls?.metadata.query ?? '', /^max\(sluice_queue_delayed\{/, set);
    }
  });

  test("the Helm chart keeps or starts one worker, and no more, for jobs that wait for spare or their vendors' capacity", () => {
    let count = 0;
    for (const [set, { spec }] of scaledObjects().filter(([, object]) => object.spec.minReplicaCount === 0)) {
      const triggers = spec.triggers as Trigger[];
      for (const load of triggers.filter(({ name }) => name.startsWith('load-'))) {
        const beside = triggers.find(({ name }) => name === load.name.replace('load', 'beside'));
        const { query = '', threshold } = beside?.metadata ?? {};
        assert.match(query, /^clamp_max\(max\(sluice_queue_flex\{.*\+ max\(sluice_queue_parked\{.*, 1\)$/, set);
        assert.equal(threshold, '1');
        count++;
      }
    }
    assert.ok(count >= 2);
  });

  test('the Helm chart takes pods away slowly and adds them at once', () => {
    const scalers = [...rendered.values()].flat().filter(({ kind }) => kind === 'HorizontalPodAutoscaler');
    const behaviors = [
      ...scalers.map(({ spec }) => spec.behavior),
      ...scaledObjects().map(([, { spec }]) => spec.advanced.horizontalPodAutoscalerConfig.behavior),
    ];
    assert.ok(scalers.length >= 3);
    for (const { scaleUp, scaleDown } of behaviors) {
      assert.equal(scaleUp.stabilizationWindowSeconds, 0);
      assert.ok(scaleDown.stabilizationWindowSeconds >= 300);
    }
  });

  test('the Helm chart contains each alert of deploy/prometheus and each dashboard of deploy/grafana, as they are there', () => {
    const objects = rendered.get('production') ?? [];
    const files = (folder: string, ending: string): [name: string, text: string][] => {
      const path = fileURLToPath(new URL(`../../deploy/${folder}/`, import.meta.url));
      const names = existsSync(path) ? readdirSync(path).filter((name) => name.endsWith(ending)) : [];
      return names.map((name) => [name, readFileSync(`${path}${name}`, 'utf8')]);
    };
    const rules = objects.filter(({ kind }) => kind === 'PrometheusRule');
    assert.deepEqual(
      rules.map(({ spec }) => spec),
      files('prometheus', '.yml').map(([, text]) => parse(text)),
    );
    const dashboards = objects.filter(
      ({ metadata }) => metadata.labels?.['app.kubernetes.io/component'] === 'dashboards',
    );
    assert.deepEqual(
      dashboards.flatMap(({ data = {} }) => Object.entries(data)).map(([name, text]) => [name, text.trim()]),
      files('grafana', '.json').map(([name, text]) => [name, text.trim()]),
    );
    for (const { metadata } of dashboards) assert.equal(metadata.labels?.grafana_dashboard, '1');
  });
});
