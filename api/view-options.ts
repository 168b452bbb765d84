import type { Blobs } from '../shared/blobs.ts';
import { inlineLimit } from '../shared/queue.ts';

const reference = /^\{"blob":"([^"]+)"\}$/;

/**
 * What a job's identity carries of its view options: the JSON text, or over 64 KiB (the tools of an agent, say) a reference
 * to the blob that holds it.
 */
export async function packViewOptions(blobs: Blobs, options: Record<string, unknown>): Promise<string> {
  const text = JSON.stringify(options);
  return text.length <= inlineLimit ? text : `{"blob":"${await blobs.put(text)}"}`;
}

/** The JSON text of packed view options. @throws MissingBlobError when their time is over. */
export async function readViewOptions(blobs: Blobs, packed: string): Promise<string> {
  const blob = reference.exec(packed)?.[1];
  return blob === undefined ? packed : await blobs.text(blob);
}
