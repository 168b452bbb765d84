import { type Config, ConfigError } from '../shared/config/config.ts';
import type { Program } from './supervised-child.ts';

/**
 * As in package.json. Collecting before the young generation is full only means more collections. Node 24 would give the young
 * generation 96 MB: with half of that, requests cost the same, and 5,000 open streams less memory. With a quarter, a held request
 * costs an api a seventh more, and open streams take no less. Where most objects of a place in the code survived a collection, as
 * they do when a process starts under load, V8 would allocate all later ones of that place among the old objects: each would keep
 * what its request can reach until the next full collection, and small collections would take several times as long (see also build.mjs).
 *
 * One thread helps to collect garbage, not four: those took all cores of a small machine from the threads that answer, whenever the
 * thread of large bodies collected. On two cores a large prompt costs a tenth less CPU.
 */
const processFlags = [
  '--max-semi-space-size=16',
  '--no-minor-gc-task',
  '--no-allocation-site-pretenuring',
  '--v8-pool-size=1',
];

/** Paths of the modules that run as children, and of the lock of their build. */
export interface Programs {
  readonly buildLock: string;
  readonly api: string;
  readonly worker: string;
  readonly sandbox: string;
  /** Node flags for all of them. */
  readonly nodeFlags?: readonly string[];
}

/**
 * The worker and api processes to run, by the settings SLUICE_WORKER_PROCESSES and SLUICE_API_PROCESSES.
 * @param settings settings of all of them, with the PORT of the apis
 * @param apiSettings settings for the apis only
 * @throws ConfigError if two processes would have the same port.
 */
export function gatewayPrograms(
  config: Config,
  { worker, api }: Programs,
  settings: Record<string, string>,
  apiSettings: Record<string, string>,
): { workerPrograms: readonly Program[]; apiPrograms: readonly Program[] } {
  const { apiProcesses, workerProcesses, workerPort, metricsPort } = config;
  checkPorts(config, Number(settings.PORT));
  const workerPrograms = Array.from({ length: workerProcesses }, (_, index) => ({
    name: nameOf('worker', index),
    file: worker,
    nodeFlags: processFlags,
    settings: { ...settings, ...nextPort('WORKER_PORT', workerPort, index) },
  }));
  const apiPrograms = Array.from({ length: apiProcesses }, (_, index) => ({
    name: nameOf('api', index),
    file: api,
    nodeFlags: processFlags,
    sharesPort: apiProcesses > 1,
    settings: { ...settings, ...apiSettings, ...nextPort('METRICS_PORT', metricsPort, index) },
  }));
  return { workerPrograms, apiPrograms };
}

function nameOf(role: string, index: number): string {
  return index === 0 ? role : `${role} process ${index + 1}`;
}

/** Each process of a role has its own port, counted from the one that is set. */
function nextPort(name: string, port: number | undefined, index: number): Record<string, string> {
  return port === undefined || port === 0 ? {} : { [name]: String(port + index) };
}

/** The ports of the processes besides the one that the apis share, each with the setting that it is counted from. */
export function countedPorts(config: Config): [setting: string, port: number][] {
  const ports = portRanges(config).flatMap(({ name, first, count }) =>
    Array.from({ length: first ? count : 0 }, (_, index): [string, number] => [name, Number(first) + index]),
  );
  // The others are refused.
  return ports.filter(([, port]) => port <= 65_535);
}

function portRanges({ apiProcesses, workerProcesses, metricsPort, workerPort }: Config) {
  return [
    { name: 'METRICS_PORT', first: metricsPort, count: apiProcesses, role: 'api' },
    { name: 'WORKER_PORT', first: workerPort, count: workerProcesses, role: 'worker' },
  ];
}

/**
 * Two processes of one port would answer for each other, or one of them would start again and again.
 * @throws ConfigError if ports of processes are the same, or there are no such ports.
 */
function checkPorts(config: Config, port: number): void {
  const taken = [{ name: 'PORT', first: port, last: port }];
  for (const { name, first, count, role } of portRanges(config)) {
    if (first === undefined || first === 0) continue;
    const last = first + count - 1;
    const ports = `${name} ${first} is the first of the ports of ${count} ${role} processes`;
    if (last > 65_535) throw new ConfigError(`${ports}: set it to ${65_536 - count} or less.`);
    const other = taken.find((range) => first <= range.last && last >= range.first);
    if (other !== undefined) {
      const what = other.name === 'PORT' ? 'PORT is not one of them' : `none of them is one of ${other.name}`;
      throw new ConfigError(`${ports}: set it so that ${what}.`);
    }
    taken.push({ name, first, last });
  }
}
