import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { chartValues, environmentOf, type KubernetesObject, podOf, renderChart } from '../support/helm-chart.ts';

const sets = await chartValues();
const rendered = new Map<string, KubernetesObject[]>();

before(async () => {
  for (const [name, path] of sets) rendered.set(name, await renderChart(path));
});

type Labels = Readonly<Record<string, string>>;
interface Selector {
  readonly matchLabels?: Labels;
  readonly matchExpressions?: readonly { readonly key: string; readonly operator: string; readonly values: string[] }[];
}

function selects({ matchLabels = {}, matchExpressions = [] }: Selector, labels: Labels): boolean {
  for (const { operator } of matchExpressions) assert.equal(operator, 'In');
  return (
    Object.entries(matchLabels).every(([name, value]) => labels[name] === value) &&
    matchExpressions.every(({ key, values }) => values.includes(labels[key] ?? ''))
  );
}

/** The labels of the pods that an object makes. */
const podLabels = (object: KubernetesObject): Labels => object.spec.template.metadata.labels;

/** One test for each set of values. */
function forEachSet(sentence: string, check: (objects: readonly KubernetesObject[], set: string) => void): void {
  test(sentence, () => {
    assert.ok(rendered.size >= 4);
    for (const [set, objects] of rendered) check(objects, set);
  });
}

const ofKind = (objects: readonly KubernetesObject[], ...kinds: string[]): KubernetesObject[] =>
  objects.filter(({ kind }) => kinds.includes(kind));
const makers = (objects: readonly KubernetesObject[]): KubernetesObject[] => objects.filter((object) => podOf(object));

describe('the objects of the Helm chart', () => {
  forEachSet('objects of the Helm chart have names of their own, which are not too long', (objects, set) => {
    const names = objects.map(({ kind, metadata }) => `${kind} ${metadata.name}`);
    assert.deepEqual(names, [...new Set(names)], set);
    for (const { metadata } of objects) assert.ok(metadata.name.length <= 63, metadata.name);
  });

  forEachSet(
    'Services, budgets and network policies of the Helm chart select the pods of one role each',
    (objects, set) => {
      const pods = makers(objects);
      const selectors: (readonly [KubernetesObject, Selector])[] = [
        ...ofKind(objects, 'Service').map((object) => [object, { matchLabels: object.spec.selector }] as const),
        ...ofKind(objects, 'PodDisruptionBudget', 'Deployment', 'StatefulSet').map(
          (object) => [object, object.spec.selector] as const,
        ),
        ...ofKind(objects, 'NetworkPolicy').map((object) => [object, object.spec.podSelector] as const),
      ];
      assert.ok(selectors.length >= 15);
      for (const [object, selector] of selectors) {
        const found = pods.filter((pod) => selects(selector, podLabels(pod)));
        const about = `${set}: ${object.kind} ${object.metadata.name} selects ${found.length}`;
        assert.equal(found.length, 1, about);
        if (object.kind === 'Deployment' || object.kind === 'StatefulSet') assert.equal(found[0], object, about);
      }
    },
  );

  forEachSet('every pod of the Helm chart has a network policy, and api and workers have a budget', (objects, set) => {
    for (const pod of makers(objects)) {
      const labels = podLabels(pod);
      const has = (kind: string, selector: (object: KubernetesObject) => Selector): boolean =>
        ofKind(objects, kind).some((object) => selects(selector(object), labels));
      const about = `${set}: ${pod.metadata.name}`;
      assert.ok(
        has('NetworkPolicy', ({ spec }) => spec.podSelector),
        about,
      );
      const isRole = /^(api|worker-.*)$/.test(labels['app.kubernetes.io/component'] ?? '');
      assert.equal(
        has('PodDisruptionBudget', ({ spec }) => spec.selector),
        isRole,
        about,
      );
    }
  });

  forEachSet('Services and monitors of the Helm chart name ports that the pods have', (objects, set) => {
    const portsOf = (object: KubernetesObject): string[] =>
      podOf(object).containers[0].ports.map(({ name }: { name: string }) => name);
    for (const service of ofKind(objects, 'Service')) {
      const pod = makers(objects).find((maker) => selects({ matchLabels: service.spec.selector }, podLabels(maker)));
      assert.ok(pod !== undefined);
      for (const { targetPort } of service.spec.ports) {
        assert.ok(portsOf(pod).includes(targetPort), `${set}: ${service.metadata.name}: ${targetPort}`);
      }
    }
    for (const { spec } of ofKind(objects, 'ServiceMonitor')) {
      const services = ofKind(objects, 'Service').filter(({ metadata }) =>
        selects(spec.selector, metadata.labels ?? {}),
      );
      // Alerts ask for `job=~"sluice.*"`.
      for (const { metadata } of services) assert.equal(metadata.labels?.[spec.jobLabel], 'sluice', set);
      // That of callers is none of them.
      assert.deepEqual(
        services.map(({ metadata }) => metadata.name),
        ['gateway-sluice-metrics'],
      );
      assert.deepEqual(
        spec.endpoints.map(({ port }: { port: string }) => port),
        services.flatMap((service) => service.spec.ports.map(({ name }: { name: string }) => name)),
      );
    }
    for (const { spec } of ofKind(objects, 'PodMonitor')) {
      const pods = makers(objects).filter((maker) => selects(spec.selector, podLabels(maker)));
      const workers = makers(objects).filter(({ metadata }) => metadata.name.includes('-worker-'));
      assert.deepEqual(pods, workers);
      for (const pod of pods) assert.equal(podLabels(pod)[spec.jobLabel], 'sluice', set);
      for (const pod of pods) assert.ok(portsOf(pod).includes(spec.podMetricsEndpoints[0].port));
    }
    for (const { spec } of ofKind(objects, 'Ingress')) {
      for (const { http } of spec.rules) {
        const { name, port } = http.paths[0].backend.service;
        const service = ofKind(objects, 'Service').find(({ metadata }) => metadata.name === name);
        assert.ok(service?.spec.ports.some((each: { name: string }) => each.name === port.name));
      }
    }
  });

  forEachSet(
    'autoscalers of the Helm chart scale Deployments that exist and set no number of pods themselves',
    (objects, set) => {
      const scalers = ofKind(objects, 'HorizontalPodAutoscaler', 'ScaledObject');
      const targets = scalers.map(({ spec }) => spec.scaleTargetRef.name as string);
      assert.deepEqual(targets, [...new Set(targets)], set);
      for (const { metadata, spec, kind } of ofKind(objects, 'Deployment')) {
        const isScaled = targets.includes(metadata.name);
        assert.equal(spec.replicas === undefined, isScaled, `${set}: ${kind} ${metadata.name}`);
      }
      const names = ofKind(objects, 'Deployment').map(({ metadata }) => metadata.name);
      for (const target of targets) assert.ok(names.includes(target), `${set}: ${target}`);
    },
  );

  forEachSet(
    'pods of the Helm chart mount volumes that they have, of objects that the chart makes or the values name',
    (objects, set) => {
      const made = new Set(objects.map(({ kind, metadata }) => `${kind} ${metadata.name}`));
      const named = /^(internal-authorities|redis-ca|database-ca)$/;
      for (const maker of makers(objects)) {
        const pod = podOf(maker);
        const { volumeMounts } = pod.containers[0];
        const claims = (maker.spec.volumeClaimTemplates ?? []).map(({ metadata }: KubernetesObject) => metadata.name);
        const volumes = [...(pod.volumes ?? []).map(({ name }: { name: string }) => name), ...claims];
        assert.deepEqual(
          volumeMounts.map(({ name }: { name: string }) => name).sort(),
          volumes.sort(),
          maker.metadata.name,
        );
        for (const { configMap, secret, persistentVolumeClaim: claim } of pod.volumes ?? []) {
          if (configMap) assert.ok(named.test(configMap.name) || made.has(`ConfigMap ${configMap.name}`), set);
          if (secret) assert.match(secret.secretName, named, set);
          if (claim) assert.ok(made.has(`PersistentVolumeClaim ${claim.claimName}`), set);
        }
      }
    },
  );

  forEachSet(
    'pods of the Helm chart take secrets from Secrets that the chart makes or the values name',
    (objects, set) => {
      const made = new Set(ofKind(objects, 'Secret').map(({ metadata }) => metadata.name));
      const keys = new Map(ofKind(objects, 'Secret').map(({ metadata, stringData }) => [metadata.name, stringData]));
      const named = /^sluice-(redis|database|api|vendors|metrics)$/;
      for (const maker of makers(objects)) {
        for (const { name, valueFrom } of environmentOf(maker)) {
          if (valueFrom === undefined) continue;
          const reference = valueFrom.secretKeyRef;
          assert.ok(reference !== undefined, name);
          assert.ok(named.test(reference.name) || made.has(reference.name), `${set}: ${name} of ${reference.name}`);
          if (made.has(reference.name)) assert.ok(keys.get(reference.name)?.[reference.key] !== undefined, name);
        }
        for (const { secretRef } of podOf(maker).containers[0].envFrom ?? []) assert.match(secretRef.name, named, set);
      }
    },
  );

  forEachSet(
    'network policies of the Helm chart keep the metadata of the cloud, and bundled services, from whoever has no use for them',
    (objects, set) => {
      for (const { metadata, spec } of ofKind(objects, 'NetworkPolicy')) {
        assert.deepEqual(spec.policyTypes, ['Ingress', 'Egress'], metadata.name);
        const isBundled = /-(redis|postgres|sandbox)$/.test(metadata.name);
        if (isBundled) {
          assert.deepEqual(spec.egress, [], metadata.name);
          for (const { from } of spec.ingress) assert.equal(from.length, 1, `${set}: ${metadata.name}`);
          if (!metadata.name.endsWith('-postgres')) continue;
          const [{ podSelector }] = spec.ingress[0].from;
          const callers = makers(objects).filter((maker) => selects(podSelector, podLabels(maker)));
          const roles = callers.map((maker) => podLabels(maker)['app.kubernetes.io/component']);
          assert.deepEqual(roles.sort(), ['api', 'migration'], set);
          continue;
        }
        const blocks = spec.egress.flatMap(({ to = [] }) => to).flatMap(({ ipBlock = {} }) => ipBlock);
        const wide = blocks.filter(({ cidr }: { cidr: string }) => cidr === '0.0.0.0/0');
        assert.equal(wide.length, 1, metadata.name);
        assert.ok(wide[0].except.includes('169.254.0.0/16'), metadata.name);
      }
    },
  );
});
