import type { JournalEntry } from '../../sandbox/journal.ts';
import type { TestGateway } from './gateway.ts';

export type { JournalEntry };

/** The calls that the sandbox vendor has got: all, or those of one test (`metadata.test_id`, else `user`). */
export async function vendorCalls(gateway: TestGateway, testId?: string): Promise<JournalEntry[]> {
  const query = testId === undefined ? '' : `?test_id=${encodeURIComponent(testId)}`;
  const lines = await (await fetch(`${gateway.sandbox.url}/__journal${query}`)).text();
  return lines
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as JournalEntry);
}
