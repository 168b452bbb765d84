import type { JournalEntry } from '../../sandbox/journal.ts';

export type { JournalEntry };

/**
 * The calls that the sandbox vendor has got: all, or those of one test (`metadata.test_id`, else `user`).
 * @param gateway or anything else that has a sandbox
 */
export async function vendorCalls(
  { sandbox }: { readonly sandbox: { readonly url: string } },
  testId?: string,
): Promise<JournalEntry[]> {
  const query = testId === undefined ? '' : `?test_id=${encodeURIComponent(testId)}`;
  const lines = await (await fetch(`${sandbox.url}/__journal${query}`)).text();
  return lines
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as JournalEntry);
}
