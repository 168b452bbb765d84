import { readFile } from 'node:fs/promises';

/**
 * A warning if this process may open fewer files than it accepts connections: at that limit Node closes new ones, and nothing tells.
 * Undefined if it may open enough, or where the system does not say how many.
 */
export async function openFilesWarning(maxConnections: number): Promise<string | undefined> {
  // Node has raised the limit as far as it may.
  const limits = await readFile('/proc/self/limits', 'utf8').catch(() => '');
  const limit = Number(/^Max open files +(\d+)/m.exec(limits)?.[1] ?? Number.POSITIVE_INFINITY);
  if (limit >= maxConnections) return undefined;
  return `This process may have ${limit} files and connections open, and SLUICE_MAX_CONNECTIONS is ${maxConnections}: beyond the limit new connections are closed without a word. Raise it (ulimit -n; systemd: LimitNOFILE; compose: ulimits), or set SLUICE_MAX_CONNECTIONS lower.`;
}
