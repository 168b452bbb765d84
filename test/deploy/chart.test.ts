import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { parse } from 'yaml';
import {
  chartValues,
  environmentOf,
  type KubernetesObject,
  lintChart,
  notesOf,
  podOf,
  readProjectFile,
  renderChart,
} from '../support/helm-chart.ts';
import { problemsOf } from '../support/kubernetes-schemas.ts';

const sets = await chartValues();
const rendered = new Map<string, KubernetesObject[]>();

/** Every rendered object of every set of values, with the name of its set. */
function all(): [set: string, object: KubernetesObject][] {
  return [...rendered].flatMap(([set, objects]) => objects.map((object): [string, KubernetesObject] => [set, object]));
}

function ofKind(kind: string): [set: string, object: KubernetesObject][] {
  const found = all().filter(([, object]) => object.kind === kind);
  assert.ok(found.length > 0, `there is no ${kind}`);
  return found;
}

/** What makes pods, but for the bundled services. */
function ownPods(): [set: string, object: KubernetesObject][] {
  const found = all().filter(([, object]) => podOf(object)?.containers[0].image.startsWith('registry.example/'));
  assert.ok(found.length >= 4 * 4);
  return found;
}

const component = ({ metadata }: KubernetesObject): string => metadata.labels?.['app.kubernetes.io/component'] ?? '';

before(async () => {
  for (const [name, path] of sets) rendered.set(name, await renderChart(path));
});

describe('the Helm chart', () => {
  test('the Helm chart has at least four sets of values, and passes helm lint --strict with each', async () => {
    assert.ok(sets.length >= 4);
    for (const [, path] of sets) await lintChart(path);
  });

  test("the Helm chart renders objects that Kubernetes', KEDA's and the Prometheus operator's schemas allow, without unknown fields", async () => {
    const problems = await Promise.all(
      all().map(async ([set, object]) =>
        (await problemsOf(object)).map((problem) => `${set}: ${object.kind} ${object.metadata.name}: ${problem}`),
      ),
    );
    assert.deepEqual(problems.flat(), []);
    // The schemas know versions that clusters have stopped to serve.
    const versions = ['v1', 'apps/v1', 'autoscaling/v2', 'batch/v1', 'networking.k8s.io/v1', 'policy/v1'];
    const ofOperators = ['keda.sh/v1alpha1', 'monitoring.coreos.com/v1'];
    assert.deepEqual(
      [...new Set(all().map(([, { apiVersion }]) => apiVersion))].sort(),
      [...versions, ...ofOperators].sort(),
    );
  });

  test('the check against schemas notices a misspelt field, a value of a wrong type and an unknown kind, however deep', async () => {
    const [, scaled] = ofKind('ScaledObject')[0] as [string, KubernetesObject];
    const [, api] = ofKind('Deployment').find(([, object]) => component(object) === 'api') as [
      string,
      KubernetesObject,
    ];
    const changed = (object: KubernetesObject, change: (copy: KubernetesObject) => void): KubernetesObject => {
      const copy = structuredClone(object);
      change(copy);
      return copy;
    };
    const misspelt = changed(api, (copy) => {
      podOf(copy).containers[0].livenessProbe.failureThreshhold = 3;
    });
    assert.deepEqual(await problemsOf(misspelt), ['/spec/template/spec/containers/0/livenessProbe/failureThreshhold']);
    const inKeda = changed(scaled, ({ spec }) => {
      spec.advanced.horizontalPodAutoscalerConfig.behaviour = {};
    });
    assert.deepEqual(await problemsOf(inKeda), ['/spec/advanced/horizontalPodAutoscalerConfig/behaviour']);
    const wrong = changed(scaled, ({ spec }) => {
      spec.triggers[0].metadata.threshold = 350;
    });
    assert.match((await problemsOf(wrong))[0] ?? '', /threshold must be string/);
    assert.deepEqual(await problemsOf({ ...api, apiVersion: 'apps/v2' }), ['apps/v2 has no Deployment']);
  });

  test('the Helm chart gives no pod rights, a writable image, a token of the cluster or variables of its Services', () => {
    for (const [set, object] of all()) {
      const pod = podOf(object);
      if (pod === undefined) continue;
      const about = `${set}: ${object.metadata.name}`;
      assert.equal(pod.automountServiceAccountToken, false, about);
      // A Service named worker would set WORKER_PORT to its address.
      assert.equal(pod.enableServiceLinks, false, about);
      assert.equal(pod.securityContext.runAsNonRoot, true, about);
      assert.ok(pod.securityContext.runAsUser > 0, about);
      assert.deepEqual(pod.securityContext.seccompProfile, { type: 'RuntimeDefault' }, about);
      for (const key of ['hostNetwork', 'hostPID', 'hostIPC', 'initContainers'])
        assert.equal(pod[key], undefined, about);
      assert.equal(pod.containers.length, 1, about);
      const [{ securityContext, resources, volumeMounts }] = pod.containers;
      assert.deepEqual(
        securityContext,
        {
          allowPrivilegeEscalation: false,
          privileged: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        },
        about,
      );
      assert.ok(resources.limits.memory !== undefined && resources.requests.cpu !== undefined, about);
      assert.ok(
        volumeMounts.some(({ mountPath }: { mountPath: string }) => mountPath === '/tmp'),
        about,
      );
      assert.ok(!JSON.stringify(pod.volumes).includes('hostPath'), about);
    }
  });

  test('the Helm chart gives each pod more time to end than it takes at most by its settings', () => {
    for (const [set, object] of ownPods()) {
      if (object.kind === 'Job' || component(object) === 'sandbox') continue;
      const about = `${set}: ${object.metadata.name}`;
      const environment = new Map(environmentOf(object).map(({ name, value }) => [name, value]));
      const drain = Number(environment.get('SLUICE_SHUTDOWN_SECONDS'));
      const lameDuck = component(object) === 'api' ? Number(environment.get('SLUICE_LAME_DUCK_SECONDS')) : 0;
      assert.ok(podOf(object).terminationGracePeriodSeconds >= drain + lameDuck + 10, about);
      // Unless it is set otherwise, what waits longest is not cut.
      if (set !== 'everything') assert.ok(drain >= Number(environment.get('SLUICE_DEADLINE_SECONDS') ?? 600), about);
    }
  });

  test('the Helm chart replaces pods one by one, without one missing, and asks apart whether a pod has started, is ready and lives', () => {
    for (const [set, object] of ownPods()) {
      if (object.kind === 'Job' || component(object) === 'sandbox') continue;
      const about = `${set}: ${object.metadata.name}`;
      assert.deepEqual(object.spec.strategy.rollingUpdate, { maxSurge: 1, maxUnavailable: 0 }, about);
      const [container] = podOf(object).containers;
      const paths = ['startupProbe', 'readinessProbe', 'livenessProbe'].map((probe) => container[probe].httpGet.path);
      assert.deepEqual(paths, ['/healthz', '/readyz', '/healthz'], about);
      const names = container.ports.map(({ name }: { name: string }) => name);
      for (const probe of ['startupProbe', 'readinessProbe', 'livenessProbe']) {
        assert.ok(names.includes(container[probe].httpGet.port), about);
      }
      // A busy pod is not killed for one slow answer.
      assert.ok(container.livenessProbe.failureThreshold * container.livenessProbe.periodSeconds >= 30, about);
    }
  });

  test('the Helm chart starts roles, Redis and Postgres as docker-compose.yml does', async () => {
    const { services } = parse(await readProjectFile('docker-compose.yml'), { merge: true });
    const dockerfile = await readProjectFile('Dockerfile');
    const api = JSON.parse(/^CMD (\[.*\])$/m.exec(dockerfile.slice(dockerfile.lastIndexOf('FROM')))?.[1] ?? '[]');
    const worker = services['worker-chat'].command.split(' ');
    for (const [set, object] of ownPods()) {
      const { command } = podOf(object).containers[0];
      if (component(object) === 'api') assert.deepEqual(command, api, set);
      if (component(object) === 'worker-chat') assert.deepEqual(command, worker, set);
      if (component(object) === 'sandbox') assert.deepEqual(command, services.sandbox.command, set);
    }
    const byDefault = (image: string): string => /:-(.*)\}$/.exec(image)?.[1] ?? '';
    for (const [, object] of ofKind('StatefulSet')) {
      const [container] = podOf(object).containers;
      const service = services[component(object)];
      assert.equal(container.image, byDefault(service.image));
      assert.equal(podOf(object).securityContext.runAsUser, 999);
      if (component(object) !== 'redis') continue;
      const settings = (script: string): string[] =>
        [...script.matchAll(/^ *((?:requirepass|appendonly|save|maxmemory\S*|auto-aof\S*|hash-max\S*) .*)$/gm)].map(
          ([, line]) => (line as string).replace('$$', '$').replace(/\$\{SLUICE_REDIS_MAXMEMORY:-(.*)\}/, '$1'),
        );
      assert.deepEqual(settings(container.command[2]), settings(services.redis.command[2]));
      assert.ok(settings(container.command[2]).length >= 7);
    }
  });

  test('the Helm chart lets the bundled Redis use half of its memory at most, since saving may double it', () => {
    const bytes = (size: string): number => {
      const [, amount, unit] = /^(\d+)(M|G|m|g)(?:i|b)$/.exec(size) ?? [];
      return Number(amount) * 1024 ** (unit?.toUpperCase() === 'G' ? 3 : 2);
    };
    for (const [, object] of ofKind('StatefulSet')) {
      if (component(object) !== 'redis') continue;
      const [container] = podOf(object).containers;
      const [, most = ''] = /^maxmemory (\S+)$/m.exec(container.command[2]) ?? [];
      assert.ok(bytes(most) > 0 && 2 * bytes(most) <= bytes(container.resources.limits.memory));
    }
  });

  test('the Helm chart runs migrations as a hook that needs nothing which does not exist before an installation', async () => {
    const own = new Set(all().map(([set, object]) => `${set} ${object.metadata.name}`));
    for (const [set, job] of ofKind('Job')) {
      const hooks = job.metadata.annotations?.['helm.sh/hook'];
      const isBundled = all().some(([of, object]) => of === set && component(object) === 'postgres');
      assert.equal(hooks, isBundled ? 'pre-upgrade' : 'pre-install,pre-upgrade', set);
      const pod = podOf(job);
      assert.equal(pod.serviceAccountName, undefined);
      const references = [
        ...environmentOf(job).flatMap(({ valueFrom }) => valueFrom?.secretKeyRef ?? []),
        ...(pod.containers[0].envFrom ?? []).map(({ secretRef }: { secretRef: object }) => secretRef),
      ];
      assert.ok(references.length > 0);
      for (const { name, optional } of references) {
        if (isBundled && /-(redis|postgres)$/.test(name)) continue;
        assert.ok(optional === true || !own.has(`${set} ${name}`), `${set}: ${name} is made by the chart`);
      }
      assert.ok(!JSON.stringify(pod.volumes).includes('persistentVolumeClaim'));
      assert.deepEqual(pod.containers[0].command, ['node', 'dist/launcher/migrate.js']);
      // What the hook has done no api process does again, perhaps with fewer rights.
      const [, api] = ofKind('Deployment').find(([of, object]) => of === set && component(object) === 'api') as [
        string,
        KubernetesObject,
      ];
      const atStart = environmentOf(api).find(({ name }) => name === 'SLUICE_MIGRATE_AT_START')?.value;
      assert.equal(atStart, isBundled ? undefined : 'off', set);
    }
    assert.ok(
      (await readProjectFile('build.mjs')).includes("'launcher/migrate'"),
      'npm run build makes no such program',
    );
  });

  test('the Ingress of the Helm chart neither buffers nor ends a stream before its deadline', () => {
    for (const [set, { metadata }] of ofKind('Ingress')) {
      const annotation = (name: string): string | undefined =>
        metadata.annotations?.[`nginx.ingress.kubernetes.io/${name}`];
      assert.equal(annotation('proxy-buffering'), 'off', set);
      assert.equal(annotation('proxy-request-buffering'), 'off', set);
      assert.equal(annotation('proxy-body-size'), '320m', set);
      const [, api] = all().find(([of, object]) => of === set && component(object) === 'api' && podOf(object)) as [
        string,
        KubernetesObject,
      ];
      const given = environmentOf(api).find(({ name }) => name === 'SLUICE_DEADLINE_SECONDS')?.value;
      for (const name of ['proxy-read-timeout', 'proxy-send-timeout']) {
        assert.ok(Number(annotation(name)) > Number(given ?? 600), `${set}: ${name}`);
      }
    }
  });

  test('the Helm chart tells after an installation how to make a key, and warns of what is only for trying out', async () => {
    const paths = new Map(sets);
    const bundled = await notesOf(paths.get('bundled') as string);
    assert.match(bundled, /kubectl -n ai exec deployment\/gateway-sluice-api -- node dist\/launcher\/keys\.js create/);
    assert.match(bundled, /WARNING: the bundled Redis and Postgres/);
    const production = await notesOf(paths.get('production') as string);
    assert.doesNotMatch(production, /WARNING|is not set|No vendor/);
  });

  test('the Helm chart has the version of package.json', async () => {
    const { version } = JSON.parse(await readProjectFile('package.json'));
    const chart = parse(await readProjectFile('deploy/helm/sluice/Chart.yaml'));
    assert.deepEqual([chart.version, chart.appVersion], [version, version]);
  });
});
