import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { storedBlobs } from '../support/stored-blobs.ts';
import { readPlan } from './answer-plan.ts';
import type { ClientRecord } from './clients.ts';
import type { Deployment } from './deployment.ts';
import type { FaultSchedule } from './fault-schedule.ts';
import { describe, type Violation } from './oracle.ts';

/** What may be left in the store is the file of each video that the vendor has handed out, and nothing of a request. */
export async function judgeBlobs(
  { vendor, gateway, blobFolder }: Deployment,
  schedule: FaultSchedule,
  records: readonly ClientRecord[],
): Promise<Violation[]> {
  const calls = [...vendor.calls.values()].flat();
  const fetched = calls.filter(({ kind, ended }) => kind === 'video' && ended === 'completed');
  const blobs = await storedBlobs(gateway.dataDir);
  const films = blobs.filter((name) => name.endsWith('.mp4'));
  const found: Violation[] = [];
  if (films.length > fetched.length) {
    found.push({ rule: 'left_in_blobs', detail: `${films.length} files of ${fetched.length} videos` });
  }
  for (const name of blobs.filter((blob) => !blob.endsWith('.mp4'))) {
    const marker = readPlan(await readBlob(blobFolder, name))?.marker;
    const record = records.find(({ plan }) => plan.marker === marker);
    const made = vendor.calls.get(marker ?? '') ?? [];
    // A job goes on for a while when its client is cut off: it is over after its last call.
    const ends = [...(record?.exchanges ?? []), ...made].map(({ endedAt }) => endedAt ?? 0);
    const [from, to] = [record?.exchanges[0]?.at ?? 0, Math.max(0, ...ends) + 5000];
    // Who is killed, or loses its disk, right after it has written cannot take it back; the store itself does, by the hour.
    if (schedule.has(['process_killed', 'worker_killed_before_settling', 'blobs_broken'], from, to)) continue;
    const of = record && describe({ record, calls: made });
    found.push({ rule: 'left_in_blobs', detail: `${name} of ${marker}: ${of}` });
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
