import { openJobRow } from '../../../api/ledger/job-rows.ts';
import { openDatabase } from '../../../shared/database/database.ts';
import { newJobId } from '../../../shared/ids.ts';
import type { JobIdentity } from '../../../shared/jobs/job-state.ts';
import type { TestGateway } from '../../support/gateway.ts';

/** Puts ended jobs of the first account, for the model `many`, into the database. */
export async function addJobs(gateway: TestGateway, count: number): Promise<void> {
  const db = await openDatabase(gateway);
  const rows = Array.from({ length: count }, (_, index) => {
    const createdAt = Date.now() - 1000 - index;
    const identity = { account: 'default', apiKeyId: 'key', endpoint: 'chat.completions', capability: 'chat' };
    const times = { id: newJobId(createdAt), createdAt, retentionMs: 0, stream: false };
    const job = { ...identity, ...times, model: 'many' } as unknown as JobIdentity;
    return { ...openJobRow(job), outcome: 'completed' as const, ended_at: createdAt + 10, cost: 5 };
  });
  await db.insertInto('jobs').values(rows).execute();
  await db.destroy();
}
