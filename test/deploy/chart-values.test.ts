import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { parse } from 'yaml';
import { plainSettings } from '../../docs/chart-values.ts';
import { capabilities } from '../../shared/capabilities/capability.ts';
import { readConfig, settingNames } from '../../shared/config/config.ts';
import {
  chartValues,
  environmentOf,
  type KubernetesObject,
  podOf,
  readProjectFile,
  renderChart,
  renderWith,
} from '../support/helm-chart.ts';
import { problemsOf } from '../support/kubernetes-schemas.ts';

/** The least that the chart wants. */
const minimal = {
  image: { repository: 'registry.example/sluice' },
  redis: { url: { secret: 'sluice-redis' } },
  database: { url: { secret: 'sluice-database' } },
  files: { bucket: { url: 's3://files?region=eu-central-1' } },
};

/** Values of secrets, which the chart does not know. */
const secretValues: Readonly<Record<string, string>> = {
  REDIS_URL: 'rediss://:secret@redis:6379',
  DATABASE_URL: 'postgres://sluice:secret@database/sluice',
  METRICS_TOKEN: 'a-token-of-some-length',
};

const sets = await chartValues();
const rendered = new Map<string, KubernetesObject[]>();

before(async () => {
  for (const [name, path] of sets) rendered.set(name, await renderChart(path));
});

/** Pods of api, workers and migrations of every set of values. */
function roles(): [set: string, role: string, object: KubernetesObject][] {
  const found = [...rendered].flatMap(([set, objects]) =>
    objects.flatMap((object): [string, string, KubernetesObject][] => {
      const role = object.metadata.labels?.['app.kubernetes.io/component'] ?? '';
      return podOf(object) && /^(api|worker-.*|migration)$/.test(role) ? [[set, role, object]] : [];
    }),
  );
  assert.ok(found.length >= 16);
  return found;
}

/** What a role's process finds in its environment, with stand-ins for what comes from Secrets. */
function environmentWithSecrets(object: KubernetesObject): Record<string, string> {
  const variables = environmentOf(object).map(({ name, value }) => [name, value ?? secretValues[name] ?? '']);
  // The file lies in a ConfigMap here.
  return { ...Object.fromEntries(variables), SLUICE_CONFIG: '' };
}

describe('the environment of pods of the Helm chart', () => {
  test('pods of the Helm chart are given known settings alone, each once', () => {
    for (const [set, role, object] of roles()) {
      const names = environmentOf(object).map(({ name }) => name);
      assert.deepEqual(
        names.filter((name) => !settingNames.includes(name)),
        [],
        `${set}: ${role}`,
      );
      assert.deepEqual(names, [...new Set(names)], `${set}: ${role}`);
    }
  });

  test('pods of the Helm chart are given settings that their processes take', () => {
    for (const [set, role, object] of roles()) {
      const config = readConfig(environmentWithSecrets(object));
      assert.equal(config.host, '0.0.0.0', `${set}: ${role}`);
      if (role === 'api') {
        const [{ ports }] = podOf(object).containers;
        assert.deepEqual(
          ports.map(({ containerPort }: { containerPort: number }) => containerPort),
          [config.port, config.metricsPort],
        );
        // A page cannot point a name of its own here.
        assert.ok(config.publicUrls.includes('http://gateway-sluice.ai.svc') || set === 'everything', set);
      }
      if (role.startsWith('worker-')) {
        assert.equal(config.workerPort, podOf(object).containers[0].ports[0].containerPort, `${set}: ${role}`);
      }
    }
  });

  test('pods of the Helm chart contain no secret: each comes from a Secret, and only for those that need it', () => {
    const isSecret = /KEY|TOKEN|SECRET|PASSWORD|^(REDIS|DATABASE|SMTP)_URL$/;
    for (const [set, role, object] of roles()) {
      const about = `${set}: ${role}`;
      for (const { name, value } of environmentOf(object)) {
        if (isSecret.test(name) && !plainSettings.includes(name)) assert.equal(value, undefined, `${about}: ${name}`);
        assert.doesNotMatch(value ?? '', /:\/\/[^/@]*:[^/@]+@/, `${about}: ${name}`);
      }
      const sources = (podOf(object).containers[0].envFrom ?? []).map(
        ({ secretRef }: { secretRef: { name: string } }) => secretRef.name,
      );
      // Who may sign in and what signs cookies is no worker's business, nor is the database.
      const seesUsers = sources.includes('sluice-api') || environmentWithSecrets(object).DATABASE_URL !== undefined;
      if (role.startsWith('worker-')) assert.ok(!seesUsers, about);
      else assert.ok(environmentWithSecrets(object).DATABASE_URL !== undefined, about);
      if (role === 'migration') assert.ok(!sources.includes('sluice-vendors'), about);
    }
  });

  test('api pods of the Helm chart spool nothing to a volume that ends with them', () => {
    const spools = roles()
      .filter(([, role]) => role === 'api')
      .map(([set, , object]) => {
        const claim = (podOf(object).volumes as { persistentVolumeClaim?: object }[]).some(
          (volume) => volume.persistentVolumeClaim,
        );
        assert.equal(readConfig(environmentWithSecrets(object)).spoolBytes > 0, claim, set);
        return claim;
      });
    assert.ok(spools.includes(true) && spools.includes(false));
  });

  test('workers of the Helm chart run the capabilities and as many jobs at a time as the values say', async () => {
    const objects = await renderWith({
      ...minimal,
      workers: [
        { name: 'media', capabilities: ['image', 'speech'], concurrency: 7, settings: { SLUICE_REGION: 'eu' } },
      ],
    });
    const workers = objects.filter(({ kind, metadata }) => kind === 'Deployment' && /-worker-/.test(metadata.name));
    assert.equal(workers.length, 1);
    const worker = workers[0] as KubernetesObject;
    assert.deepEqual(podOf(worker).containers[0].command.slice(-3), ['dist/workers/main.js', 'image', 'speech']);
    const { workerConcurrency, region } = readConfig(environmentWithSecrets(worker));
    assert.deepEqual([workerConcurrency.image, workerConcurrency.speech, region], [7, 7, 'eu']);
    assert.notEqual(workerConcurrency.chat, 7);
  });

  test('with the host of a cluster of IPv6 alone every process of the Helm chart listens on it', async () => {
    const objects = await renderWith({ ...minimal, host: '::', sandbox: { enabled: true } });
    const deployments = objects.filter(({ kind }) => kind === 'Deployment');
    assert.ok(deployments.length >= 6);
    for (const object of deployments) {
      const isSandbox = object.metadata.name.endsWith('-sandbox');
      const { command } = podOf(object).containers[0];
      const host = isSandbox ? command[command.indexOf('--host') + 1] : readConfig(environmentWithSecrets(object)).host;
      assert.equal(host, '::', object.metadata.name);
    }
  });

  test('links of the gateway that is only tried out lead to the port that the guide of the Helm chart forwards', async () => {
    const guide = await readProjectFile('docs/guides/kubernetes.md');
    const [, port = ''] = /port-forward service\/sluice (\d+):80/.exec(guide) ?? [];
    const api = rendered
      .get('bundled')
      ?.find(({ kind, metadata }) => kind === 'Deployment' && /-api$/.test(metadata.name));
    const [main] = readConfig(environmentWithSecrets(api as KubernetesObject)).publicUrls;
    assert.equal(main, `http://127.0.0.1:${port}`);
  });

  test('workers of the Helm chart cover each capability once by default', async () => {
    const { workers } = parse(await readProjectFile('deploy/helm/sluice/values.yaml'));
    const covered = workers.flatMap((worker: { capabilities: string[] }) => worker.capabilities);
    assert.deepEqual(covered.sort(), [...capabilities].sort());
  });

  test('whole numbers of the values reach the pods of the Helm chart as digits, however large', async () => {
    const objects = await renderWith({ ...minimal, settings: { SLUICE_QUEUE_LIMIT: 20_000_000, LOG_LEVEL: 'warn' } });
    const api = objects.find(({ kind, metadata }) => kind === 'Deployment' && metadata.name.endsWith('-api'));
    const variables = new Map(environmentOf(api as KubernetesObject).map(({ name, value }) => [name, value]));
    assert.deepEqual([variables.get('SLUICE_QUEUE_LIMIT'), variables.get('LOG_LEVEL')], ['20000000', 'warn']);
  });

  test('on and off without quotes, which YAML reads as true and false, reach the pods of the Helm chart as on and off', async () => {
    const objects = await renderWith({ ...minimal, settings: { SLUICE_CHECK_KEYS: false, SLUICE_JOBS_EXPORT: false } });
    const api = objects.find(({ kind, metadata }) => kind === 'Deployment' && metadata.name.endsWith('-api'));
    const { checksKeys, jobExport } = readConfig(environmentWithSecrets(api as KubernetesObject));
    assert.deepEqual([checksKeys, jobExport], [false, 'off']);
  });

  test('the Helm chart without workers of its own renders objects that the schemas allow, and selects none', async () => {
    const metrics = { token: { secret: 'metrics' }, monitors: { enabled: true } };
    const objects = await renderWith({ ...minimal, metrics, workers: [] });
    for (const object of objects) assert.deepEqual(await problemsOf(object), [], object.metadata.name);
    assert.ok(objects.every(({ kind }) => kind !== 'PodMonitor'));
    assert.ok(objects.some(({ kind }) => kind === 'ServiceMonitor'));
  });

  test('a later deadline lengthens the drain and the grace period of the Helm chart', async () => {
    const [settings, ofAll] = [{ SLUICE_DEADLINE_SECONDS: 3000 }, { SLUICE_DEADLINE_SECONDS: 60 }];
    const configuration = { limits: { deadline_seconds: 3000 } };
    for (const values of [{ settings }, { settings: ofAll, api: { settings } }, { configuration }]) {
      const objects = await renderWith({ ...minimal, ...values });
      for (const object of objects.filter(({ kind }) => kind === 'Deployment')) {
        assert.ok(podOf(object).terminationGracePeriodSeconds >= 3010, object.metadata.name);
      }
    }
  });
});

describe('what the Helm chart keeps its pods from calling', () => {
  test('a network of the values that no pod may call is left out of the addresses of its own version of IP', async () => {
    const networks = ['169.254.0.0/16', '10.1.0.0/16', 'fd00:1::/32'];
    const objects = await renderWith({ ...minimal, networkPolicy: { denyEgressTo: networks } });
    const policies = objects.filter(({ kind, spec }) => kind === 'NetworkPolicy' && spec.egress.length > 0);
    assert.ok(policies.length >= 3);
    for (const { spec, metadata } of policies) {
      const blocks = spec.egress.flatMap(({ to = [] }: { to?: { ipBlock: object }[] }) =>
        to.map((peer) => peer.ipBlock),
      );
      assert.deepEqual(
        blocks,
        [
          { cidr: '0.0.0.0/0', except: ['169.254.0.0/16', '10.1.0.0/16'] },
          { cidr: '::/0', except: ['fe80::/10', 'fd00:ec2::254/128', 'fd00:1::/32'] },
        ],
        metadata.name,
      );
    }
  });

  test('the Helm chart takes keys of vendors in the configuration file as names of variables', async () => {
    const vendors = {
      openai: { api_keys: [`\${OPENAI_API_KEY}`, `\${FIRST},\${SECOND}`] },
      bedrock: { api_key: `AKIA123:\${SECRET}` },
      mine: { like: 'vllm', base_url: 'http://10.0.0.5:8000/v1' },
      perplexity: { enabled: false },
    };
    assert.ok((await renderWith({ ...minimal, configuration: { vendors } })).length > 10);
  });
});

describe('values of the Helm chart', () => {
  /** What is refused, with a part of what helm says about it. */
  const refused: readonly (readonly [what: string, values: object, message: RegExp])[] = [
    ['a misspelt value', { ...minimal, imgae: {} }, /additional properties 'imgae' not allowed/],
    ['a misspelt value inside another', { ...minimal, api: { replica: 2 } }, /additional properties 'replica'/],
    [
      'a misspelt value of a worker',
      { ...minimal, workers: [{ name: 'a', capabilities: ['chat'], concurrency: 1, concurency: 2 }] },
      /additional properties 'concurency'/,
    ],
    [
      'an unknown capability',
      { ...minimal, workers: [{ name: 'a', capabilities: ['chta'], concurrency: 1 }] },
      /workers\/0\/capabilities\/0/,
    ],
    ['an unknown setting', { ...minimal, settings: { SLUICE_QUEUE_LIMITS: 1 } }, /'SLUICE_QUEUE_LIMITS'/],
    ['a vendor key as a setting', { ...minimal, settings: { OPENAI_API_KEY: 'sk-1' } }, /'OPENAI_API_KEY'/],
    [
      'a vendor key in the configuration file',
      { ...minimal, configuration: { vendors: { openai: { api_key: 'sk-secret' } } } },
      /configuration\.vendors\.openai has a key(?!.*sk-secret)/,
    ],
    [
      'a vendor key among others in the configuration file',
      { ...minimal, configuration: { vendors: { openai: { api_keys: [`\${FIRST}`, `\${SECOND},sk-secret`] } } } },
      /configuration\.vendors\.openai has a key(?!.*sk-secret)/,
    ],
    [
      'a mount whose name no volume can have',
      { ...minimal, mounts: [{ name: 'internal.ca', secret: 'a' }] },
      /mounts\/0/,
    ],
    [
      'two mounts of one name',
      { ...minimal, mounts: ['a', 'b'].map((secret) => ({ name: 'ca', secret })) },
      /Two mounts have the name ca/,
    ],
    [
      'an address in place of a network',
      { ...minimal, networkPolicy: { denyEgressTo: ['10.0.0.1'] } },
      /denyEgressTo\/0/,
    ],
    ['the secret as a setting', { ...minimal, api: { settings: { SLUICE_SECRET: 'x' } } }, /'SLUICE_SECRET'/],
    ['a proxy with a login as a setting', { ...minimal, settings: { HTTPS_PROXY: 'http://a:b@c' } }, /HTTPS_PROXY/],
    ['an address with a password as a setting', { ...minimal, settings: { REDIS_URL: 'redis://a' } }, /'REDIS_URL'/],
    ['a setting that the chart decides', { ...minimal, settings: { PORT: 1 } }, /'PORT'/],
    [
      'credentials in the address of the bucket',
      { ...minimal, files: { bucket: { url: 's3://id:secret@files' } } },
      /files\/bucket\/url/,
    ],
    ['a wrong type', { ...minimal, api: { replicas: 'two' } }, /api\/replicas/],
    ['no image', { ...minimal, image: {} }, /image\.repository is required/],
    ['no Redis', { ...minimal, redis: {} }, /Redis is required/],
    ['no Postgres', { ...minimal, database: {} }, /Postgres is required/],
    ['no place for files', { ...minimal, files: {} }, /Files need a place/],
    [
      'two places for files',
      { ...minimal, files: { ...minimal.files, claim: { create: true } } },
      /exclude each other/,
    ],
    [
      'a Redis of both kinds',
      { ...minimal, redis: { ...minimal.redis, bundled: { enabled: true } } },
      /redis\.url\.secret and redis\.bundled/,
    ],
    ['scaling without a Prometheus', { ...minimal, scaling: { enabled: true } }, /scaling\.prometheus\.serverAddress/],
    ['monitors without a token', { ...minimal, metrics: { monitors: { enabled: true } } }, /metrics\.token\.secret/],
    [
      'a deadline that is no number',
      { ...minimal, settings: { SLUICE_DEADLINE_SECONDS: 'abc' } },
      /SLUICE_DEADLINE_SECONDS/,
    ],
    ['an ingress without hosts', { ...minimal, ingress: { enabled: true } }, /ingress\.hosts/],
    [
      'an ingress for a name under which the gateway is not known',
      {
        ...minimal,
        publicUrls: ['https://ai.example.org'],
        ingress: { enabled: true, hosts: ['ai.example.org', 'ai.example.com'] },
      },
      /ingress\.hosts has ai\.example\.com, which is in none of publicUrls/,
    ],
    [
      'more api pods at least than at most',
      { ...minimal, api: { autoscaling: { minReplicas: 11 } } },
      /api\.autoscaling\.minReplicas is above api\.autoscaling\.maxReplicas/,
    ],
    [
      'two workers of one name',
      { ...minimal, workers: ['chat', 'image'].map((of) => ({ name: 'a', capabilities: [of], concurrency: 1 })) },
      /Two workers have the name a/,
    ],
    [
      'two workers that scale by one queue',
      {
        ...minimal,
        scaling: { enabled: true, prometheus: { serverAddress: 'http://prometheus' } },
        workers: ['a', 'b'].map((name) => ({ name, capabilities: ['chat'], concurrency: 1 })),
      },
      /Two workers scale by the queue of chat/,
    ],
    [
      'more pods at least than at most',
      {
        ...minimal,
        workers: [{ name: 'a', capabilities: ['chat'], concurrency: 1, scaling: { minReplicas: 3, maxReplicas: 2 } }],
      },
      /scaling\.minReplicas is above/,
    ],
  ];
  for (const [what, values, message] of refused) {
    test(`the Helm chart refuses ${what}`, async () => {
      await assert.rejects(renderWith(values), (error: Error) => {
        assert.match(error.message, message);
        return true;
      });
    });
  }

  test('the Helm chart takes the least that it wants, to which the refused values are added', async () => {
    assert.ok((await renderWith(minimal)).length > 10);
  });

  test('the guide of the Helm chart tells about each value at the top, and about no other', async () => {
    const guide = await readProjectFile('docs/guides/kubernetes.md');
    const [, table = ''] = guide.split('\n## Values\n');
    const rows = table.split('\n## ')[0]?.match(/^\| `[^|]*/gm) ?? [];
    const told = rows.flatMap((row) => row.match(/(?<=`)\w+(?=`)/g) ?? []);
    const values = Object.keys(parse(await readProjectFile('deploy/helm/sluice/values.yaml')));
    assert.deepEqual(told.sort(), values.sort());
  });
});
