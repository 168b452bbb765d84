import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { eventually } from './eventually.ts';
import { freePort } from './free-port.ts';

const run = promisify(execFile);

/** A job of Prometheus's scrape_configs, as plain data. */
export interface ScrapeJob {
  readonly job_name: string;
  readonly scrape_interval: string;
  readonly authorization?: { readonly credentials: string };
  readonly static_configs: readonly { readonly targets: readonly string[]; readonly labels?: Record<string, string> }[];
}

export interface PrometheusOptions {
  /** Paths of files of rules. */
  readonly ruleFiles?: readonly string[];
  /** Features that are off by default. */
  readonly features?: readonly string[];
}

/** A sample of an answer to a query. */
export interface PrometheusSample {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: number;
}

/** An exemplar, with labels of its own. */
export interface Exemplar {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: string;
}

/** An alert whose expression holds. */
export interface ActiveAlert {
  readonly labels: Readonly<Record<string, string>>;
  /** `pending`: not for as long as its `for` asks. */
  readonly state: 'pending' | 'firing';
}

/** A real Prometheus: the machine's own, else Debian's package, unpacked into a folder of the test. */
export class Prometheus {
  readonly url: string;
  readonly #folder: string;
  readonly #child: ChildProcess;

  private constructor(url: string, folder: string, child: ChildProcess) {
    this.url = url;
    this.#folder = folder;
    this.#child = child;
  }

  /** Resolves when it answers queries. @throws Error with what it wrote, if it ends at once. */
  static async start(
    jobs: readonly ScrapeJob[],
    { ruleFiles = [], features = [] }: PrometheusOptions = {},
  ): Promise<Prometheus> {
    const folder = await mkdtemp(join(tmpdir(), 'sluice-test-prometheus-'));
    const program = await findProgram(folder);
    // All JSON is YAML.
    const configuration = { scrape_configs: jobs, rule_files: ruleFiles };
    await writeFile(join(folder, 'prometheus.yml'), JSON.stringify(configuration));
    const port = await freePort();
    const child = spawn(
      program,
      [
        `--config.file=${join(folder, 'prometheus.yml')}`,
        `--storage.tsdb.path=${join(folder, 'data')}`,
        `--web.listen-address=127.0.0.1:${port}`,
        '--log.level=warn',
        ...features.map((feature) => `--enable-feature=${feature}`),
      ],
      { stdio: ['ignore', 'ignore', 'pipe'] },
    );
    let output = '';
    child.stderr?.on('data', (chunk: Buffer) => {
      output = (output + chunk.toString()).slice(-20_000);
    });
    const prometheus = new Prometheus(`http://127.0.0.1:${port}`, folder, child);
    try {
      await eventually(async () => {
        if (child.exitCode !== null) throw new Error(`Prometheus ended: ${output}`);
        if (!(await fetch(`${prometheus.url}/-/ready`)).ok) throw new Error(`Prometheus is not ready: ${output}`);
      }, 60_000);
    } catch (error) {
      await prometheus.stop();
      throw error;
    }
    return prometheus;
  }

  /** Asks as KEDA does. @throws Error with what Prometheus says about the query. */
  async query(expression: string): Promise<readonly PrometheusSample[]> {
    const response = await fetch(`${this.url}/api/v1/query?query=${encodeURIComponent(expression)}`);
    const answer = (await response.json()) as {
      readonly error?: string;
      readonly data?: { readonly result: readonly { metric: Record<string, string>; value: [number, string] }[] };
    };
    if (answer.data === undefined) throw new Error(answer.error);
    return answer.data.result.map(({ metric, value }) => ({ metric, value: Number(value[1]) }));
  }

  /** The exemplars of a selector within the last hour. */
  async exemplars(selector: string): Promise<readonly Exemplar[]> {
    const now = Date.now() / 1000;
    const query = new URLSearchParams({ query: selector, start: String(now - 3600), end: String(now + 60) });
    const response = await fetch(`${this.url}/api/v1/query_exemplars?${query}`);
    const { data } = (await response.json()) as {
      readonly data: readonly { readonly exemplars: readonly Exemplar[] }[];
    };
    return data.flatMap(({ exemplars }) => exemplars);
  }

  /** The alerts whose expressions hold now. */
  async activeAlerts(): Promise<readonly ActiveAlert[]> {
    const response = await fetch(`${this.url}/api/v1/alerts`);
    const { data } = (await response.json()) as { readonly data: { readonly alerts: readonly ActiveAlert[] } };
    return data.alerts;
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode === null) {
      const exited = once(this.#child, 'exit');
      this.#child.kill('SIGKILL');
      await exited;
    }
    await rm(this.#folder, { recursive: true, force: true });
  }
}

async function findProgram(folder: string): Promise<string> {
  const onPath = await run('prometheus', ['--version']).then(
    () => true,
    () => false,
  );
  if (onPath) return 'prometheus';
  await run('apt-get', ['download', 'prometheus'], { cwd: folder });
  const [archive = ''] = (await readdir(folder)).filter((file) => file.endsWith('.deb'));
  await run('dpkg', ['-x', archive, 'package'], { cwd: folder });
  return join(folder, 'package', 'usr', 'bin', 'prometheus');
}
