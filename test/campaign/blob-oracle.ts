import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { storedBlobs } from '../support/stored-blobs.ts';
import { readPlan } from './answer-plan.ts';
import type { ClientRecord } from './clients.ts';
import type { Deployment } from './deployment.ts';
import type { FaultSchedule } from './fault-schedule.ts';
import type { FaultKind } from './faults.ts';
import { describe, type Violation } from './oracle.ts';
import { videoBytes } from './vendor.ts';

/** Who is killed, or loses its disk, right after it has written cannot take it back; the store itself does, by the hour. */
const uncleanFaults: readonly FaultKind[] = ['process_killed', 'worker_killed_before_settling', 'blobs_broken'];

/** While one of these lasts no job ends, and a request is deleted once its job has ended. */
const holdingFaults: readonly FaultKind[] = [
  ...(['redis_out_of_memory', 'redis_read_only', 'redis_without_replicas'] as const),
  ...(['redis_killed', 'redis_frozen', 'process_frozen'] as const),
];

/** What may be left in the store is the file of each video that the vendor has handed out, and nothing of a request. */
export async function judgeBlobs(
  { vendor, gateway, blobFolder }: Deployment,
  schedule: FaultSchedule,
  records: readonly ClientRecord[],
): Promise<Violation[]> {
  const blobs = await storedBlobs(gateway.dataDir);
  const found: Violation[] = [];
  const films = new Map<string, number>();
  for (const name of blobs.filter((blob) => blob.endsWith('.mp4'))) {
    const text = await readBlob(blobFolder, name);
    films.set(text, (films.get(text) ?? 0) + 1);
  }
  const videos = [...vendor.calls.values()].flat().filter(({ kind }) => kind === 'video');
  for (const { plan, number, fetchedAt } of videos) {
    const text = videoBytes(plan.marker, number).toString();
    const count = films.get(text) ?? 0;
    films.delete(text);
    const [from, to] = [fetchedAt[0] ?? 0, (fetchedAt.at(-1) ?? 0) + 5000];
    // Each time it is fetched it may be stored, but only who can clean up no more leaves what another has fetched again.
    const most = schedule.has(uncleanFaults, from, to) ? fetchedAt.length : Math.min(1, fetchedAt.length);
    if (count > most) {
      found.push({ rule: 'left_in_blobs', detail: `${count} files of ${plan.marker}, call ${number}: ${fetchedAt}` });
    }
  }
  for (const text of films.keys()) {
    found.push({ rule: 'left_in_blobs', detail: `a file of no video: ${text.slice(0, 100)}` });
  }
  for (const name of blobs.filter((blob) => !blob.endsWith('.mp4'))) {
    const marker = readPlan(await readBlob(blobFolder, name))?.marker;
    const record = records.find(({ plan }) => plan.marker === marker);
    const made = vendor.calls.get(marker ?? '') ?? [];
    // A job goes on for a while when its client is cut off: it is over after its last call.
    const ends = [...(record?.exchanges ?? []), ...made].map(({ endedAt }) => endedAt ?? 0);
    const from = record?.exchanges[0]?.at ?? 0;
    const to = schedule.doneBy(holdingFaults, Math.max(0, ...ends) + 5000);
    if (schedule.has(uncleanFaults, from, to)) continue;
    const of = record && describe({ record, calls: made });
    const faults = schedule.describe(from, to + 30_000);
    found.push({ rule: 'left_in_blobs', detail: `${name} of ${marker}: ${of}; from 0 to ${to - from}: ${faults}` });
  }
  return found;
}

async function readBlob(folder: string, name: string): Promise<string> {
  for (const hour of await readdir(folder)) {
    const text = await readFile(join(folder, hour, name), 'utf8').catch(() => undefined);
    if (text !== undefined) return text;
  }
  return '';
}
