import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { Autoscaler, type ScaledObjectSpec } from '../support/autoscaler.ts';
import { held } from '../support/chat-requests.ts';
import { eventually } from '../support/eventually.ts';
import { isSoak } from '../support/faults/load.ts';
import { freePort } from '../support/free-port.ts';
import { type GatewayProcess, TestGateway } from '../support/gateway.ts';
import { environmentOf, type KubernetesObject, podOf, renderWith } from '../support/helm-chart.ts';
import { Prometheus } from '../support/prometheus.ts';
import { createVideo } from '../support/sandbox-videos.ts';

const token = 'a-token-of-some-length';
/** How often a HorizontalPodAutoscaler looks, by default. */
const adjustMs = 15_000;
/** Jobs of two seconds: 3 run at a time, then 30. A pod has 10 slots. */
const job = held('WORDS:40@20');
const [calm, tenfold] = [1.5, 15];

/** The chart with workers of few slots, and times that let the test end. */
const values = {
  image: { repository: 'registry.example/sluice' },
  redis: { url: { secret: 'redis' } },
  database: { url: { secret: 'database' } },
  files: { bucket: { url: 's3://files' } },
  metrics: { token: { secret: 'metrics' }, monitors: { enabled: true } },
  scaling: {
    ...{ enabled: true, prometheus: { serverAddress: 'http://prometheus' } },
    ...{ pollingInterval: 5, cooldownPeriod: 30 },
  },
  workers: ['chat', 'video'].map((capability) => ({
    ...{ name: capability, capabilities: [capability], concurrency: 10 },
    scaling: { minReplicas: 0, maxReplicas: 8 },
  })),
};

/** What a ScaledObject wants, with real processes as its pods. */
class ScaledWorkers {
  readonly autoscaler: Autoscaler;
  readonly spec: ScaledObjectSpec;
  /** Each change of the number of pods: when, by `performance.now()`, and to how many. */
  readonly history: { readonly at: number; readonly replicas: number }[] = [];
  readonly #gateway: TestGateway;
  readonly #capability: 'chat' | 'video';
  readonly #settings: Record<string, string>;
  readonly #running: Promise<GatewayProcess>[] = [];
  readonly #ended: Promise<unknown>[] = [];

  constructor(gateway: TestGateway, capability: 'chat' | 'video', objects: readonly KubernetesObject[]) {
    const name = `gateway-sluice-worker-${capability}`;
    const find = (kind: string): KubernetesObject =>
      objects.find((object) => object.kind === kind && object.metadata.name === name) as KubernetesObject;
    this.spec = find('ScaledObject').spec;
    this.autoscaler = new Autoscaler(this.spec, performance.now() / 1000);
    this.#gateway = gateway;
    this.#capability = capability;
    const pod = find('Deployment');
    assert.equal(podOf(pod).containers[0].command.at(-1), capability);
    const concurrency = environmentOf(pod).find((variable) => variable.name.startsWith('WORKER_CONCURRENCY_'));
    this.#settings = { [concurrency?.name ?? '']: concurrency?.value ?? '', SLUICE_SHUTDOWN_SECONDS: '60' };
  }

  /** Asks the triggers' queries; each must have one element, as KEDA wants. */
  async read(prometheus: Prometheus): Promise<number[]> {
    return await Promise.all(
      this.spec.triggers.map(async ({ metadata }) => {
        const samples = await prometheus.query(metadata.query);
        assert.equal(samples.length, 1, metadata.query);
        return samples[0]?.value as number;
      }),
    );
  }

  /** Starts and stops processes until there are as many as are wanted; does not wait for either. */
  follow(): void {
    const { replicas } = this.autoscaler;
    if (replicas === this.#running.length) return;
    this.history.push({ at: performance.now(), replicas });
    while (this.#running.length < replicas)
      this.#running.push(this.#gateway.startWorker(this.#settings, this.#capability));
    while (this.#running.length > replicas) {
      const last = this.#running.pop() as Promise<GatewayProcess>;
      this.#ended.push(last.then((worker) => worker.stop()).then((code) => assert.equal(code, 0)));
    }
  }

  async end(): Promise<void> {
    await Promise.all([...this.#running, ...this.#ended]);
  }
}

/** What a Prometheus answers to a query of the chart. @param figures of the queue, by the metrics' names */
function answerOf(query: string, figures: Readonly<Record<string, number>>): number {
  const text = query.replace(/max\(sluice_queue_(\w+)\{[^}]+\} >= 0\)/g, (_, name) => String(figures[name]));
  const clamp = (value: number, least: number, most: number): number => Math.min(most, Math.max(least, value));
  return new Function('clamp', 'clamp_max', `return ${text}`)(clamp, Math.min) as number;
}

describe('an autoscaler that follows the Helm chart', () => {
  test('an autoscaler that follows the Helm chart starts no pods for jobs of low priority, however many wait, but for others', async () => {
    const objects = await renderWith(values);
    const found = objects.find(({ kind, metadata }) => kind === 'ScaledObject' && metadata.name.endsWith('-chat'));
    const { spec } = found as KubernetesObject;
    const autoscaler = new Autoscaler(spec, 0);
    /** The pods after minutes with so many jobs, of which those of low priority fill nine slots in ten. */
    const podsWith = (from: number, waiting: number, flex: number): number => {
      for (let at = from; at < from + 600; at += 15) {
        const active = autoscaler.replicas * (waiting > 0 ? 10 : 9);
        const figures = { waiting, active, flex, parked: 0, oldest_wait_seconds: 0 };
        const answers = (spec as ScaledObjectSpec).triggers.map(({ metadata }) => answerOf(metadata.query, figures));
        autoscaler.activate(at, answers);
        autoscaler.adjust(at, answers);
      }
      return autoscaler.replicas;
    };
    assert.equal(podsWith(0, 0, 10_000), 1);
    assert.equal(podsWith(600, 50, 10_000), 8);
  });

  test('an autoscaler as Kubernetes describes it adds pods by its policies, keeps the most that was wanted, and goes to none after the cooldown', async () => {
    const objects = await renderWith(values);
    const found = objects.find(({ kind, metadata }) => kind === 'ScaledObject' && metadata.name.endsWith('-chat'));
    const autoscaler = new Autoscaler((found as KubernetesObject).spec, 0);
    assert.equal(autoscaler.replicas, 0);
    autoscaler.activate(5, [1]);
    assert.equal(autoscaler.replicas, 1);
    const seen: number[] = [];
    // 70 % of 10 slots are wanted: 7 jobs a pod.
    for (const [at, jobs] of [
      [15, 100],
      [30, 100],
      [315, 20],
      [330, 20],
      [345, 20],
      [390, 20],
    ] as const) {
      autoscaler.activate(at, [jobs]);
      autoscaler.adjust(at, [jobs]);
      seen.push(autoscaler.replicas);
    }
    assert.deepEqual(seen, [8, 8, 8, 4, 4, 3]);
    autoscaler.activate(419, [0]);
    assert.equal(autoscaler.replicas, 3);
    autoscaler.activate(420, [0]);
    assert.equal(autoscaler.replicas, 0);
  });
  if (!isSoak) return;

  let gateway: TestGateway;
  let prometheus: Prometheus;
  let metricsUrl = '';
  let chat: ScaledWorkers;
  let video: ScaledWorkers;
  const stopping = new AbortController();
  const loops: Promise<void>[] = [];
  let failure: unknown;

  before(async () => {
    const objects = await renderWith(values);
    gateway = await TestGateway.start({ apis: 0, workers: 0, aof: true, settings: { METRICS_TOKEN: token } });
    const ports = [await freePort(), await freePort()];
    for (const port of ports) await gateway.startApi({ METRICS_PORT: String(port) });
    metricsUrl = `http://127.0.0.1:${ports[0]}/metrics`;
    const [monitor] = objects.filter(({ kind }) => kind === 'ServiceMonitor');
    const targets = ports.map((port) => `127.0.0.1:${port}`);
    prometheus = await Prometheus.start([
      {
        // The operator gives these labels.
        job_name: 'sluice',
        scrape_interval: monitor?.spec.endpoints[0].interval,
        authorization: { credentials: token },
        static_configs: [{ targets, labels: { namespace: 'ai', service: 'gateway-sluice-metrics' } }],
      },
    ]);
    chat = new ScaledWorkers(gateway, 'chat', objects);
    video = new ScaledWorkers(gateway, 'video', objects);
    await eventually(() => chat.read(prometheus), 60_000);
    for (const workers of [chat, video]) {
      loops.push(
        every(values.scaling.pollingInterval * 1000, (now, read) => workers.autoscaler.activate(now, read), workers),
      );
      loops.push(every(adjustMs, (now, read) => workers.autoscaler.adjust(now, read), workers));
    }
  });
  after(async () => {
    stopping.abort();
    await Promise.all(loops);
    await prometheus.stop();
    await gateway.stop();
  });

  /** Repeats a check of an autoscaler. */
  async function every(
    ms: number,
    check: (now: number, read: number[]) => void,
    workers: ScaledWorkers,
  ): Promise<void> {
    const { signal } = stopping;
    while (!signal.aborted) {
      try {
        check(performance.now() / 1000, await workers.read(prometheus));
        workers.follow();
      } catch (error) {
        failure ??= error;
      }
      await delay(ms, undefined, { signal }).catch(() => undefined);
    }
  }

  /** Asks at a fixed rate, whatever becomes of it; answers how many of the requests were answered whole. */
  async function load(perSecond: number, seconds: number): Promise<{ readonly sent: number; readonly whole: number }> {
    const answers: Promise<boolean>[] = [];
    const start = performance.now();
    for (let index = 0; index < perSecond * seconds; index++) {
      await delay(Math.max(0, start + (index * 1000) / perSecond - performance.now()));
      const url = (gateway.apis[index % 2] as { url: string }).url;
      const client = gateway.client({ url, timeout: 120_000 });
      answers.push(
        client.chat.completions.create(job).then(
          (answer) => (answer.choices[0]?.message.content ?? '').split(' ').length === 40,
          () => false,
        ),
      );
    }
    const ended = await Promise.all(answers);
    return { sent: ended.length, whole: ended.filter(Boolean).length };
  }

  /** How long the oldest job has waited, as an api tells it. */
  async function oldestWait(): Promise<number> {
    const response = await fetch(metricsUrl, { headers: { authorization: `Bearer ${token}` } });
    const [, wait] =
      /^sluice_queue_oldest_wait_seconds\{[^}]*capability="chat"[^}]*\} (\S+)$/m.exec(await response.text()) ?? [];
    return Number(wait);
  }

  test('pods that are at none start for the first jobs, and no job is lost; a video keeps its worker between two polls', {
    timeout: 600_000,
  }, async (context) => {
    assert.equal(chat.autoscaler.replicas, 0);
    const film = await createVideo(gateway.client(), { sandbox: { video: { duration_ms: 90_000 } } });
    const first = await load(5, 1);
    assert.deepEqual(first, { sent: 5, whole: 5 });
    await eventually(
      async () => assert.equal((await gateway.client().videos.retrieve(film.id)).status, 'completed'),
      240_000,
    );
    const whileMade = video.history.map(({ replicas }) => replicas);
    assert.deepEqual(whileMade, [1], 'the worker left before the video was there');
    await eventually(() => assert.deepEqual([chat.autoscaler.replicas, video.autoscaler.replicas], [0, 0]), 180_000);
    context.diagnostic(`chat ${JSON.stringify(chat.history)}, video ${JSON.stringify(video.history)}`);
    if (failure !== undefined) throw failure;
  });

  test('ten times the load is served within a minute, without flapping, and afterwards the pods go without an answer lost', {
    timeout: 1_200_000,
  }, async (context) => {
    const before = await load(calm, 60);
    assert.deepEqual([before.whole, chat.autoscaler.replicas], [before.sent, 1]);
    const start = performance.now();
    const watching = new AbortController();
    let lateMs = 0;
    let longest = 0;
    const watch = (async () => {
      while (!watching.signal.aborted) {
        const wait = await oldestWait();
        longest = Math.max(longest, wait);
        if (wait >= 5) lateMs = performance.now() - start;
        await delay(500);
      }
    })();
    const during = await load(tenfold, 150);
    watching.abort();
    await watch;
    const most = Math.max(...chat.history.map(({ replicas }) => replicas));
    const after = await load(calm, 480);
    const calmAgain = chat.autoscaler.replicas;
    await eventually(() => assert.equal(chat.autoscaler.replicas, 0), 180_000);
    await chat.end();
    const last = await load(5, 1);
    const steps = chat.history
      .filter(({ at }) => at >= start)
      .map(({ at, replicas }) => [Math.round((at - start) / 1000), replicas]);
    context.diagnostic(
      JSON.stringify({ before, during, after, last, longestWaitSeconds: longest, backSeconds: lateMs / 1000, steps }),
    );
    assert.deepEqual([during.whole, after.whole, last.whole], [during.sent, after.sent, last.sent]);
    assert.ok(lateMs > 0, 'the load was no load');
    assert.ok(lateMs <= 60_000, `the oldest job waited for 5 s or longer until ${lateMs} ms after the start`);
    // Up while it is needed, then down: never up again before the last burst.
    const numbers = steps.map(([, replicas]) => replicas as number).slice(0, -1);
    const top = numbers.indexOf(most);
    const isUp = (index: number): boolean => (numbers[index + 1] as number) > (numbers[index] as number);
    for (let index = 0; index < numbers.length - 1; index++)
      assert.equal(isUp(index), index < top, JSON.stringify(steps));
    assert.ok(calmAgain <= 2, `${calmAgain} pods for the load of one`);
    if (failure !== undefined) throw failure;
  });
});
