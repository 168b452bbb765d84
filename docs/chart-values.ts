import { z } from 'zod';
import { capabilities } from '../shared/capabilities/capability.ts';
import { settingNames } from '../shared/config/config.ts';

/** Settings that a chart's value of another name decides, or the chart itself. */
const decidedByChart = new Set([
  ...['HOST', 'PORT', 'PUBLIC_URL', 'TRUST_PROXY', 'SLUICE_DATA_DIR', 'SLUICE_CONFIG', 'WORKER_PORT', 'METRICS_PORT'],
  ...['SANDBOX_BASE_URL', 'SLUICE_SANDBOX', 'SLUICE_SHUTDOWN_SECONDS', 'SLUICE_LAME_DUCK_SECONDS'],
  ...['SLUICE_MIGRATE_AT_START', 'SLUICE_LEDGER'],
  // Of a data folder that may end with its pod.
  'SLUICE_SPOOL_MEGABYTES',
  // Of npm start and compose alone.
  ...['SLUICE_REDIS_MAXMEMORY', 'SLUICE_API_PROCESSES', 'SLUICE_WORKER_PROCESSES'],
]);

/** Settings whose values are secrets, or addresses that contain one: they come from Secrets alone. */
const isSecret = /(_KEY|_KEY_ID|_TOKEN|_SECRET|_PASSWORD|_HEADERS|(?<!_BASE)_URL)$/;

/** The settings that values.yaml may contain as they are. */
export const plainSettings = settingNames.filter(
  (name) => !decidedByChart.has(name) && !isSecret.test(name) && !name.startsWith('WORKER_CONCURRENCY_'),
);

const text = z.string();
/** As Kubernetes names objects. */
const name = z.string().regex(/^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$/);
/** Of a volume, `mount-NAME`: other than names of objects it has no dots, and at most 63 characters. */
const mountName = z.string().regex(/^[a-z0-9]([-a-z0-9]{0,54}[a-z0-9])?$/);
const count = z.int().min(0);
const seconds = count;
const quantity = z.union([z.string(), z.number()]);
/** Parts of Kubernetes' own objects, which it checks itself. */
const part = z.looseObject({});
const parts = z.array(part);
const strings = z.record(z.string(), z.string());

const setting = z.union([z.string(), z.number(), z.boolean()]);
const settings = z.strictObject({
  ...Object.fromEntries(plainSettings.map((name) => [name, setting.optional()])),
  // The grace periods of pods are made of it.
  SLUICE_DEADLINE_SECONDS: z.union([count, z.string().regex(/^\d*$/)]).optional(),
  // One with a login comes from the Secret of vendors.
  HTTPS_PROXY: z
    .string()
    .regex(/^[^@]*$/)
    .optional(),
});
const amounts = z.strictObject({
  cpu: quantity.optional(),
  memory: quantity.optional(),
  'ephemeral-storage': quantity.optional(),
});
const resources = z.strictObject({ requests: amounts.optional(), limits: amounts.optional() });
const storage = z.strictObject({ size: text, storageClassName: name });
const secretKey = z.strictObject({ secret: name, key: text.min(1) });

/** Of pods of api and workers. */
const pods = {
  resources,
  settings,
  podAnnotations: strings,
  podLabels: strings,
  nodeSelector: strings,
  tolerations: parts,
  affinity: part,
  priorityClassName: name,
};
const scaling = { enabled: z.boolean(), minReplicas: count, maxReplicas: count.min(1) };

/** Where what is left out comes from workerDefaults. */
const worker = z.strictObject({
  name: z.string().regex(/^[a-z0-9]([-a-z0-9]{0,18}[a-z0-9])?$/),
  capabilities: z.array(z.enum(capabilities)).min(1),
  concurrency: z.int().min(1).max(100_000),
  replicas: count.optional(),
  scaling: z.strictObject(scaling).partial().optional(),
  ...z.strictObject(pods).partial().shape,
});

const values = z.strictObject({
  image: z.strictObject({
    repository: text,
    tag: text,
    digest: z.string().regex(/^(sha256:[0-9a-f]{64})?$/),
    pullPolicy: z.enum(['Always', 'IfNotPresent', 'Never']),
    pullSecrets: z.array(name.min(1)),
  }),
  publicUrls: z.array(z.string().regex(/^https?:\/\/[^,]+$/)),
  trustProxy: z.union([z.string(), z.number(), z.boolean()]),
  host: z.enum(['0.0.0.0', '::']),
  secrets: z.strictObject({ api: name, vendors: name }),
  settings,
  configuration: part,
  mounts: z.array(
    z.union([
      z.strictObject({ name: mountName, secret: name.min(1) }),
      z.strictObject({ name: mountName, configMap: name.min(1) }),
    ]),
  ),
  redis: z.strictObject({
    url: secretKey,
    bundled: z.strictObject({
      ...{ enabled: z.boolean(), image: text, maxMemory: z.string().regex(/^\d+[mg]b$/), resources, storage },
    }),
  }),
  database: z.strictObject({
    url: secretKey,
    bundled: z.strictObject({ enabled: z.boolean(), image: text, resources, storage }),
  }),
  files: z.strictObject({
    // Credentials in it would stand in the pod's description.
    bucket: z.strictObject({ url: z.string().regex(/^(s3:\/\/[^@]+)?$/), secret: name }),
    claim: z.strictObject({
      ...{ name, create: z.boolean(), size: text, storageClassName: name },
      accessMode: z.enum(['ReadWriteMany', 'ReadWriteOnce']),
    }),
    scratchSize: text,
  }),
  shutdown: z.strictObject({ lameDuckSeconds: seconds.max(3_600), drainSeconds: seconds.max(86_400).optional() }),
  api: z.strictObject({
    replicas: count,
    autoscaling: z.strictObject({
      ...{ enabled: z.boolean(), minReplicas: count.min(1), maxReplicas: count.min(1) },
      targetCpuPercent: z.int().min(1).max(100),
    }),
    service: z.strictObject({
      type: z.enum(['ClusterIP', 'NodePort', 'LoadBalancer']),
      port: z.int().min(1).max(65_535),
      annotations: strings,
    }),
    ...pods,
  }),
  workers: z.array(worker),
  workerDefaults: z.strictObject({ replicas: count, scaling: z.strictObject(scaling), ...pods }),
  scaling: z.strictObject({
    enabled: z.boolean(),
    prometheus: z.strictObject({ serverAddress: text, selector: text, authenticationRef: name, authModes: text }),
    targetLoad: z.number().min(0.1).max(1),
    targetWaitSeconds: z.number().min(1),
    ...{ pollingInterval: seconds.min(1), cooldownPeriod: seconds, scaleDownStabilizationSeconds: seconds.max(3_600) },
  }),
  metrics: z.strictObject({
    token: secretKey,
    monitors: z.strictObject({ enabled: z.boolean(), interval: z.string().regex(/^\d+s$/), labels: strings }),
    rules: z.strictObject({ enabled: z.boolean(), labels: strings }),
    dashboards: z.strictObject({ enabled: z.boolean(), labels: strings }),
  }),
  migration: z.strictObject({ enabled: z.boolean(), activeDeadlineSeconds: seconds.min(1), url: secretKey, resources }),
  ingress: z.strictObject({
    ...{ enabled: z.boolean(), className: name, nginx: z.boolean(), annotations: strings },
    hosts: z.array(z.string().min(1)),
    tls: parts,
  }),
  networkPolicy: z.strictObject({
    ...{ enabled: z.boolean(), apiFrom: parts, metricsFrom: parts },
    denyEgressTo: z.array(z.string().regex(/^[\da-fA-F:.]+\/\d{1,3}$/)),
    extraEgress: parts,
  }),
  disruptionBudget: z.strictObject({ enabled: z.boolean(), maxUnavailable: quantity }),
  serviceAccount: z.strictObject({ create: z.boolean(), name, annotations: strings }),
  sandbox: z.strictObject({ enabled: z.boolean(), resources }),
  // What Helm itself adds.
  global: part.optional(),
});

/** The text of the chart's values.schema.json, which refuses unknown names and values of a wrong form. */
export function chartValuesSchema(): string {
  const schema = z.toJSONSchema(values, { target: 'draft-7', io: 'input', reused: 'ref' });
  return `${JSON.stringify(schema, null, 2)}\n`;
}
