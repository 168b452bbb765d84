import { createHash } from 'node:crypto';
import { basename, join } from 'node:path';
import { scriptText } from '../../../shared/redis/script.ts';
import type { RedisCommand } from '../tcp-proxy.ts';

/** Scripts by what their calls look like on the wire: their hash, or (the first time on a connection) their text. */
export class ScriptCommands {
  readonly #byHash = new Map<string, string>();

  /**
   * @param dist folder of the built product
   * @param scripts their files in it, such as `shared/jobs/append`: each its parts, the last of which names it
   */
  constructor(dist: string, scripts: readonly (readonly string[])[]) {
    for (const paths of scripts) {
      const name = basename(paths.at(-1) as string);
      const files = paths.map((path) => join(dist, `${path}.lua`));
      this.#byHash.set(createHash('sha1').update(scriptText(name, files)).digest('hex'), name);
    }
  }

  /** The script that a command calls; undefined when it calls none of them. */
  nameOf(command: RedisCommand): string | undefined {
    const kind = command[0]?.toLowerCase();
    if (kind === 'evalsha') return this.#byHash.get(command[1] as string);
    return kind === 'eval' ? /^-- (\S+)/.exec(command[1] as string)?.[1] : undefined;
  }
}

/** The job that a call of a script is about (of several: the first). */
export function jobOf(command: RedisCommand): string {
  const match = /(?:job:|log:|^)([0-9a-f]{32})(?: |$)/m.exec(command.slice(2).join('\n'));
  return match?.[1] ?? '';
}
