import assert from 'node:assert/strict';

/** A case's input of a size, by the number of things in it. */
export type Kinds<Input> = Readonly<Record<string, (count: number) => Input>>;

const few = 2000;
const many = 16 * few;
/** CPU (ms) that is never too much, on the slowest machine, for what is in proportion: else the few things are measured, too. */
const harmlessMs = 600;
/** How many times as much many things may take as few. In proportion are 16 times, by their square 256. */
const maxRatio = 60;

export function listOf<Item>(count: number, make: (at: number) => Item): Item[] {
  return Array.from({ length: count }, (_, at) => make(at));
}

/**
 * Holds work against its input: a hundred thousand of anything, each of which is looked for among all others, stop a process for all
 * callers. By the CPU of this process, never by a clock, so that others on the machine do not matter.
 */
export async function assertGrowsWithInput(
  what: string,
  work: (count: number) => Promise<unknown> | unknown,
): Promise<void> {
  const ofMany = await cpuOf(work, many);
  if (ofMany < harmlessMs) return;
  const ofFew = Math.max(await cpuOf(work, few), harmlessMs / maxRatio);
  const told = `${what}: ${many} took ${Math.round(ofMany)} ms of CPU, ${few} took ${Math.round(ofFew)} ms`;
  assert.ok(ofMany < maxRatio * ofFew, told);
}

async function cpuOf(work: (count: number) => Promise<unknown> | unknown, count: number): Promise<number> {
  const before = process.cpuUsage();
  await work(count);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}
