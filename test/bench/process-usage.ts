/** What a process has used, read from /proc (Linux only). */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';

const ticksPerSecond = Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }));

/** The fields of a process's stat from its state on: its name is in brackets and may contain blanks. */
function statFields(pid: number): string[] {
  const stat = readProcess(pid, 'stat');
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
}

/** The running children of a process, oldest first, with their command lines. */
export function childProcesses(parent: number): { pid: number; command: string }[] {
  const pids = readdirSync('/proc').map(Number).filter(Number.isInteger);
  return pids
    .sort((one, other) => one - other)
    .flatMap((pid) => {
      try {
        if (Number(statFields(pid)[1]) !== parent) return [];
        return [{ pid, command: readProcess(pid, 'cmdline').replaceAll('\0', ' ') }];
      } catch {
        // It has ended since the folder was listed.
        return [];
      }
    });
}

/** CPU time in microseconds, user and system, of a process and of its children that have ended. */
export function cpuMicroseconds(pid: number): number {
  const ticks = statFields(pid)
    .slice(11, 15)
    .reduce((sum, field) => sum + Number(field), 0);
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
