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

/** A sample of an answer to a query. */
export interface PrometheusSample {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: number;
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
  static async start(jobs: readonly ScrapeJob[]): Promise<Prometheus> {
    const folder = await mkdtemp(join(tmpdir(), 'sluice-test-prometheus-'));
    const program = await findProgram(folder);
    // All JSON is YAML.
    await writeFile(join(folder, 'prometheus.yml'), JSON.stringify({ scrape_configs: jobs }));
    const port = await freePort();
    const child = spawn(
      program,
      [
        `--config.file=${join(folder, 'prometheus.yml')}`,
        `--storage.tsdb.path=${join(folder, 'data')}`,
        `--web.listen-address=127.0.0.1:${port}`,
        '--log.level=warn',
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
