import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { type Capability, isCapability } from '../../shared/capabilities/capability.ts';
import { held } from '../support/chat-requests.ts';
import { freePort } from '../support/free-port.ts';
import { builtProduct, TestGateway } from '../support/gateway.ts';
import { chartValues, environmentOf, type KubernetesObject, podOf, renderChart } from '../support/helm-chart.ts';
import { sharedPostgres } from '../support/postgres.ts';
import { startBucket, type TestBucket } from '../support/s3.ts';

const run = promisify(execFile);
const token = 'a-token-of-some-length';

describe('processes with the environment that the Helm chart gives them', () => {
  let gateway: TestGateway;
  let bucket: TestBucket;
  let objects: KubernetesObject[];
  let databaseUrl: string;

  before(async () => {
    const values = new Map(await chartValues()).get('production') as string;
    // No load balancer is there that would have to notice.
    objects = await renderChart(values, 'shutdown.lameDuckSeconds=0', 'sandbox.enabled=true');
    bucket = await startBucket();
    databaseUrl = await (await sharedPostgres()).createDatabase();
    gateway = await TestGateway.start({ apis: 0, workers: 0 });
  });
  after(async () => {
    await gateway.stop();
    await bucket.stop();
    await (await sharedPostgres()).stop();
  });

  function find(kind: string, name: string): KubernetesObject {
    const found = objects.find(({ kind: of, metadata }) => of === kind && metadata.name === `gateway-sluice-${name}`);
    assert.ok(found !== undefined, name);
    return found;
  }

  /** A pod's variables. Addresses, ports and secrets, which are this machine's here, are replaced. */
  async function settingsOf(object: KubernetesObject): Promise<Record<string, string>> {
    const file = join(gateway.dataDir, 'sluice.yaml');
    await writeFile(file, objects.find(({ data }) => data?.['sluice.yaml'])?.data?.['sluice.yaml'] ?? '');
    const replacements: Record<string, string> = {
      REDIS_URL: gateway.redisUrl,
      DATABASE_URL: databaseUrl,
      BLOBS_URL: bucket.url(),
      METRICS_TOKEN: token,
      SANDBOX_BASE_URL: `${gateway.sandbox.url}/v1`,
      SLUICE_CONFIG: file,
      HOST: '127.0.0.1',
      // Inside of the volume, as in the pod: nobody has made it.
      SLUICE_DATA_DIR: join(gateway.dataDir, 'sluice'),
      METRICS_PORT: String(await freePort()),
      WORKER_PORT: String(await freePort()),
    };
    // This Redis has no certificate that an authority could have signed.
    const given = environmentOf(object).filter(({ name }) => name !== 'PORT' && name !== 'REDIS_TLS_CA_CERT_FILE');
    const settings = Object.fromEntries(given.map(({ name, value }) => [name, replacements[name] ?? value ?? '']));
    // What a worker has not been given, its process finds nowhere.
    return { DATABASE_URL: '', SLUICE_BOOTSTRAP_KEY: '', SLUICE_API_KEY: '', ...settings };
  }

  test('with the environment of the Helm chart, an api waits for the migration, and both roles then answer, are scraped and end', async () => {
    const apiSettings: Record<string, string> = {
      ...(await settingsOf(find('Deployment', 'api'))),
      // As of the Secret that is named for api processes.
      ...{ SLUICE_SECRET: 'a secret of at least 32 characters', SLUICE_BOOTSTRAP_KEY: gateway.apiKey },
    };
    await assert.rejects(gateway.startApi(apiSettings), /migrat/);
    const migration = find('Job', 'migration');
    const [node, program] = podOf(migration).containers[0].command;
    assert.equal(node, 'node');
    const env = gateway.settings(await settingsOf(migration));
    const { stdout } = await run(process.execPath, [program.replace('dist', builtProduct)], { env });
    assert.match(stdout, /^Migrated: /);

    const api = await gateway.startApi(apiSettings);
    const worker = find('Deployment', 'worker-chat');
    const capabilities = (podOf(worker).containers[0].command as string[]).filter(isCapability) as Capability[];
    const workerSettings = await settingsOf(worker);
    const running = await gateway.startWorker(workerSettings, ...capabilities);
    const answer = await gateway.client().chat.completions.create(held('Reply with exactly: as rendered'));
    assert.equal(answer.choices[0]?.message.content, 'as rendered');

    for (const port of [apiSettings.METRICS_PORT, workerSettings.WORKER_PORT]) {
      const url = `http://127.0.0.1:${port}/metrics`;
      assert.equal((await fetch(url)).status, 403);
      const page = await fetch(url, { headers: { authorization: `Bearer ${token}` } });
      assert.match(await page.text(), /^sluice_/m);
    }
    for (const { url } of [api, { url: `http://127.0.0.1:${workerSettings.WORKER_PORT}` }]) {
      for (const path of ['/healthz', '/readyz']) assert.equal((await fetch(`${url}${path}`)).status, 200, path);
    }
    assert.deepEqual(await Promise.all([api.stop(), running.stop()]), [0, 0]);
    const lines = `${api.output()}${running.output()}`.split('\n').filter((line) => line.startsWith('{'));
    const warnings = lines.map((line) => JSON.parse(line)).filter(({ level }) => level > 30);
    assert.deepEqual(
      // The test's own has no limit of its memory.
      warnings.map(({ msg }) => msg).filter((message) => !message.startsWith('Redis has no maxmemory')),
      [],
    );
  });
});
