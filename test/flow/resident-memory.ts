import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';

/** Bytes as whole megabytes. */
export function megabytes(bytes: number): number {
  return Math.round(bytes / 1024 / 1024);
}

/** The highest resident size of a process, in bytes, seen until `work` is done. */
export async function peakWhile(pid: number, work: Promise<unknown>): Promise<number> {
  let isDone = false;
  const done = work.finally(() => {
    isDone = true;
  });
  let peak = 0;
  while (!isDone) {
    const pages = Number((await readFile(`/proc/${pid}/statm`, 'utf8')).split(' ')[1]);
    peak = Math.max(peak, pages * 4096);
    await delay(50);
  }
  await done;
  return peak;
}
