import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { RedisCommand } from '../support/tcp-proxy.ts';

/** Scripts by what their calls look like on the wire: their hash, or (the first time on a connection) their text. */
export class ScriptCommands {
  readonly #byHash = new Map<string, string>();
  readonly #byText = new Map<string, string>();

  /**
   * @param dist folder of the built product
   * @param paths of the scripts in it, such as `shared/jobs/begin`
   */
  constructor(dist: string, paths: readonly string[]) {
    for (const path of paths) {
      const name = basename(path);
      const text = readFileSync(join(dist, `${path}.lua`));
      this.#byHash.set(createHash('sha1').update(text).digest('hex'), name);
      this.#byText.set(text.toString('latin1', 0, 200), name);
    }
  }

  /** The script that a command calls; undefined when it calls none of them. */
  nameOf(command: RedisCommand): string | undefined {
    const kind = command[0]?.toLowerCase();
    if (kind === 'evalsha') return this.#byHash.get(command[1] as string);
    return kind === 'eval' ? this.#byText.get(command[1] as string) : undefined;
  }
}

/** The job that a call of a script is about (of several: the first). */
export function jobOf(command: RedisCommand): string {
  const match = /(?:job:|log:|^)([0-9a-f]{32})(?: |$)/m.exec(command.slice(2).join('\n'));
  return match?.[1] ?? '';
}
