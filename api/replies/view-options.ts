import type { AccountBlobs } from '../../shared/blobs/account-blobs.ts';
import { inlineLimit } from '../../shared/queue/queue.ts';

const reference = /^\{"blob":"([^"]+)"\}$/;

/**
 * What a job's identity carries of its view options: the JSON text, or over 64 KiB (the tools of an agent, say) a reference
 * to the blob that holds it.
 */
export async function packViewOptions(blobs: AccountBlobs, options: object): Promise<string> {
  const text = JSON.stringify(options);
  return text.length <= inlineLimit ? text : `{"blob":"${await blobs.put(text)}"}`;
}

/** The JSON text of packed view options. @throws MissingBlobError when their time is over. */
export async function readViewOptions(blobs: AccountBlobs, packed: string): Promise<string> {
  const blob = viewOptionsBlob(packed);
  return blob === undefined ? packed : await blobs.text(blob);
}

/** Id of the blob that packed view options lie in; undefined where they lie in none. */
export function viewOptionsBlob(packed: string): string | undefined {
  return reference.exec(packed)?.[1];
}
