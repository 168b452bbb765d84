import { Worker } from 'node:worker_threads';
import { threadFile } from '../runtime/thread-file.ts';
import { type Config, ConfigError } from './config.ts';

/** The thread's answer: the settings, or what a ConfigError says. */
export type SettingsRead = { readonly config: Config } | { readonly refusal: string };

/**
 * As `readConfig`, but in a thread: a configuration file with thousands of models takes seconds to parse, for which all streams of
 * the process would stand still.
 * @param defaults of this program, which replace the usual ones
 * @throws ConfigError naming the setting, or the line of the file, and its requirement.
 */
export async function readConfigAside(defaults: Readonly<Record<string, string>> = {}): Promise<Config> {
  const read = await new Promise<SettingsRead>((resolve, reject) => {
    const thread = new Worker(threadFile('./config-thread', import.meta.url), { execArgv: [], workerData: defaults });
    thread.once('message', resolve);
    thread.once('error', reject);
    // Follows the others, which have settled it then.
    thread.once('exit', (code) => reject(new Error(`the thread that reads the settings ended with ${code}`)));
  });
  if ('refusal' in read) throw new ConfigError(read.refusal);
  return read.config;
}
