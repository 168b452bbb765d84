import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import type { GatewayProcess } from '../gateway.ts';

/** Bytes as whole megabytes. */
export function megabytes(bytes: number): number {
  return Math.round(bytes / 1024 / 1024);
}

/** The highest resident size of a process, in bytes, seen until `work` is done or the process is. */
export async function peakWhile(process: GatewayProcess, work: Promise<unknown>): Promise<number> {
  let isDone = false;
  void work.finally(() => {
    isDone = true;
  });
  let peak = 0;
  while (!isDone && process.child.exitCode === null && process.child.signalCode === null) {
    const pages = Number((await readFile(`/proc/${process.pid}/statm`, 'utf8')).split(' ')[1]);
    peak = Math.max(peak, pages * 4096);
    await delay(50);
  }
  return peak;
}
