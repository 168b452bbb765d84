import type { AccountBlobs } from '../../shared/blobs/account-blobs.ts';
import { inlineLimit } from '../../shared/queue/queue.ts';

const reference = /^\{"blob":"([^"]+)"\}$/;

/**
 * Packs view options for a job's identity: the JSON text, or over 64 KiB (such as the tools of an agent) a reference to a
 * blob with it.
 */
export async function packViewOptions(blobs: AccountBlobs, options: object): Promise<string> {
  const text = JSON.stringify(options);
  return text.length <= inlineLimit ? text : `{"blob":"${await blobs.put(text)}"}`;
}

/** Returns the JSON text of packed view options. @throws MissingBlobError when they have expired. */
export async function readViewOptions(blobs: AccountBlobs, packed: string): Promise<string> {
  const blob = viewOptionsBlob(packed);
  return blob === undefined ? packed : await blobs.text(blob);
}

/** Returns the id of the blob of packed view options, if they are in one. */
export function viewOptionsBlob(packed: string): string | undefined {
  return reference.exec(packed)?.[1];
}
