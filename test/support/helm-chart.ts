import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { parseAllDocuments } from 'yaml';

const run = promisify(execFile);
const { helm } = (await import(new URL('../deploy/helm/install.mjs', import.meta.url).href)) as { helm: string };

/** The chart. */
export const chartFolder = fileURLToPath(new URL('../../deploy/helm/sluice/', import.meta.url));

/** An object of Kubernetes, as far as the tests look into all of them alike. */
export interface KubernetesObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  // biome-ignore lint/suspicious/noExplicitAny: each kind has its own form, which its schema is checked against
  readonly spec?: any;
  readonly data?: Readonly<Record<string, string>>;
  readonly stringData?: Readonly<Record<string, string>>;
}

export interface EnvironmentVariable {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: {
    readonly secretKeyRef?: { readonly name: string; readonly key: string; readonly optional?: boolean };
  };
}

/** The pod of an object that makes pods; undefined for all others. */
export function podOf({ kind, spec }: KubernetesObject): KubernetesObject['spec'] | undefined {
  return ['Deployment', 'StatefulSet', 'Job'].includes(kind) ? spec.template.spec : undefined;
}

/** The variables of the first container of an object that makes pods. */
export function environmentOf(object: KubernetesObject): readonly EnvironmentVariable[] {
  return podOf(object).containers[0].env ?? [];
}

/** The sets of values that come with the chart: name and path. */
export async function chartValues(): Promise<readonly (readonly [name: string, path: string])[]> {
  const files = (await readdir(join(chartFolder, 'ci'))).sort();
  return files.map((file) => [file.replace('-values.yaml', ''), join(chartFolder, 'ci', file)]);
}

/** `helm lint --strict`. @throws Error with its report. */
export async function lintChart(values: string): Promise<void> {
  await run(helm, ['lint', '--strict', chartFolder, '--values', values]).catch(({ stdout, stderr }) => {
    throw new Error(`${stdout}${stderr}`);
  });
}

/**
 * Renders the chart as `helm template` does.
 * @param values path of a set of values
 * @param changes values over those, as `--set` writes them
 * @throws Error with helm's message.
 */
export async function renderChart(values: string, ...changes: readonly string[]): Promise<KubernetesObject[]> {
  const set = changes.flatMap((change) => ['--set', change]);
  // Lines such as `$patch` aside, one object is some kilobytes.
  const options = { maxBuffer: 64 * 1024 * 1024 };
  const args = ['template', 'gateway', chartFolder, '--namespace', 'ai', '--values', values, ...set];
  const { stdout } = await run(helm, args, options).catch(({ stderr, message }) => {
    throw new Error(stderr || message);
  });
  return parseAllDocuments(stdout).flatMap((document) => {
    if ('errors' in document && document.errors.length > 0) throw document.errors[0];
    const object = 'toJS' in document ? (document.toJS() as KubernetesObject | null) : null;
    return object === null ? [] : [object];
  });
}

/** Renders the chart with values of its own. @throws Error with helm's message. */
export async function renderWith(values: object): Promise<KubernetesObject[]> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-test-chart-'));
  try {
    const file = join(folder, 'values.json');
    await writeFile(file, JSON.stringify(values));
    return await renderChart(file);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** What NOTES.txt tells after an installation. */
export async function notesOf(values: string): Promise<string> {
  const args = ['install', 'gateway', chartFolder, '--dry-run=client', '--namespace', 'ai', '--values', values];
  const { stdout } = await run(helm, args, { maxBuffer: 64 * 1024 * 1024 });
  return stdout.slice(stdout.indexOf('\nNOTES:'));
}

/** A file of the repository. */
export async function readProjectFile(path: string): Promise<string> {
  return await readFile(new URL(`../../${path}`, import.meta.url), 'utf8');
}
