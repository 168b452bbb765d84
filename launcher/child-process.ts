import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';

/**
 * Options of every child. A separate process group, because a terminal sends Ctrl-C to the whole group: the children would
 * all close at once, and Redis would be gone while the others still finish their work.
 */
export const childOptions = { detached: true } as const;

const alive = new Set<ChildProcess>();
// However this process ends, no child stays behind. (After SIGKILL, the children see their IPC channel close.)
process.on('exit', () => {
  for (const child of alive) child.kill('SIGKILL');
});

/** Registers a child so that it cannot outlive this process. */
export function watchChild(child: ChildProcess): void {
  alive.add(child);
  child.once('exit', () => alive.delete(child));
}

/** Whether the process has ended. */
export function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}

/** Sends SIGTERM, then SIGKILL after the deadline; resolves when the process has ended. */
export async function endChild(child: ChildProcess, deadlineMs: number): Promise<void> {
  if (hasEnded(child) || child.pid === undefined) return;
  const exit = once(child, 'exit');
  child.kill('SIGTERM');
  const force = setTimeout(() => child.kill('SIGKILL'), deadlineMs);
  await exit;
  clearTimeout(force);
}
