/** What a process has used, read from /proc (Linux only). */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

const ticksPerSecond = Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }));

/** CPU time in microseconds, user and system, of a process and of its children that have ended. */
export function cpuMicroseconds(pid: number): number {
  const stat = readProcess(pid, 'stat');
  // The name of the process stands in brackets and may hold blanks: fields are counted behind it.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
  return (ticks / ticksPerSecond) * 1e6;
}

/** Resident memory in bytes: now, and the most there ever was. */
export function residentBytes(pid: number): { now: number; peak: number } {
  const status = readProcess(pid, 'status');
  const bytes = (field: string) => Number(new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]) * 1024;
  return { now: bytes('VmRSS'), peak: bytes('VmHWM') };
}

function readProcess(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch (error) {
    throw new Error(`process ${pid} has ended`, { cause: error });
  }
}
