import { Worker } from 'node:worker_threads';
import { threadFile } from '../runtime/thread-file.ts';
import { withTimeout } from '../runtime/with-timeout.ts';
import { type Config, ConfigError } from './config.ts';

/** The thread's answer: the settings, or what a ConfigError says. */
export type SettingsRead = { readonly config: Config } | { readonly refusal: string };

/** What the thread is told. */
export interface ThreadSettings {
  readonly defaults: Readonly<Record<string, string>>;
  /** Becomes 1 once the file is read. */
  readonly isRead: Int32Array<SharedArrayBuffer>;
}

/** A file system that hangs may never answer. A file of 5,000 models takes two seconds. */
const limitMs = 60_000;
/** How long the exit of the process waits for a thread that may only be busy. */
const exitWaitMs = 5000;

/**
 * As `readConfig`, but in a thread: a configuration file with thousands of models takes seconds to parse, for which all streams of
 * the process would stand still. After a minute it is given up, so that the file can be read again.
 * @param defaults of this program, which replace the usual ones
 * @throws ConfigError naming the setting, or the line of the file, and its requirement.
 */
export async function readConfigAside(defaults: Readonly<Record<string, string>> = {}): Promise<Config> {
  const isRead = new Int32Array(new SharedArrayBuffer(4));
  const workerData: ThreadSettings = { defaults, isRead };
  const thread = new Worker(threadFile('./config-thread', import.meta.url), { execArgv: [], workerData });
  // The exit of the process would wait for the thread, for ever if it hangs in the file system. One that does not is no reason for
  // another exit code: what runs the process would take it for killed.
  const endHanging = (): void => {
    if (Atomics.wait(isRead, 0, 0, exitWaitMs) === 'timed-out') process.kill(process.pid, 'SIGKILL');
  };
  process.on('exit', endHanging);
  const over = new Promise<SettingsRead>((resolve, reject) => {
    thread.once('message', resolve);
    thread.once('error', reject);
    // Follows the others, which have settled it then.
    thread.once('exit', (code) => reject(new Error(`the thread that reads the settings ended with ${code}`)));
  }).finally(() => process.off('exit', endHanging));
  const read = await withTimeout(over, limitMs);
  if (read === undefined) {
    // What comes of it later is of no use.
    over.catch(() => undefined);
    thread.unref();
    throw new ConfigError(
      `The configuration file could not be read within ${limitMs / 1000} s: its file system hangs.`,
    );
  }
  if ('refusal' in read) throw new ConfigError(read.refusal);
  return read.config;
}
