import { readAccountMoney } from '../../shared/accounts/account-money.ts';
import { findAccount } from '../../shared/accounts/accounts.ts';
import { type Database, openDatabase } from '../../shared/database/database.ts';
import { promptTokens, readPlan, tokenAt } from './answer-plan.ts';
import type { ClientRecord } from './clients.ts';
import { type Deployment, warmUpMarker } from './deployment.ts';
import { answerOf, type Violation } from './oracle.ts';
import type { VendorCall } from './vendor.ts';

/** A job as the ledger has it. */
interface Row {
  readonly id: string;
  readonly account: string;
  readonly marker: string;
  readonly outcome: string | null;
  readonly code: string | null;
  readonly cost: number | null;
}

/** What the sandbox's models cost, in nano-dollars: written down here again, for the oracle must not ask the product. */
const inputPrice = 10;
const outputPrice = 40;
const videoPrice = 4_000_000;
/** A request without usage is counted by the gateway; by more than this it never is. */
const maxEstimated = 80_000 * inputPrice + 1000 * outputPrice;

/** Holds the ledger against the vendor's usage, and the accounts against the ledger. */
export async function judgeLedger(deployment: Deployment, records: readonly ClientRecord[]): Promise<Violation[]> {
  const db = await openDatabase(deployment.gateway);
  try {
    const rows = await readRows(db);
    const byMarker = new Map<string, Row[]>();
    for (const row of rows) byMarker.set(row.marker, [...(byMarker.get(row.marker) ?? []), row]);
    const found: Violation[] = [];
    for (const record of records) {
      const { marker } = record.plan;
      const complain = (rule: string, detail: string): void => {
        found.push({ rule, detail: `${marker} (${record.kind}): ${detail}` });
      };
      judgeRows(record, byMarker.get(marker) ?? [], deployment.vendor.calls.get(marker) ?? [], complain);
    }
    for (const account of new Set(deployment.callers.map((caller) => caller.account))) {
      found.push(...(await judgeAccount(deployment, db, account, rows)));
    }
    return found;
  } finally {
    await db.destroy();
  }
}

/** What the vendor has served and what the ledger has charged, in nano-dollars and in calls and rows. */
export interface LedgerSums {
  readonly vendor: { readonly calls: number; readonly cost: number };
  readonly ledger: { readonly rows: number; readonly cost: number };
}

/** Both sums over all requests with a marker, where every answer is whole and the vendor reports usage: they are equal. */
export async function sumLedger({ vendor, gateway }: Deployment): Promise<LedgerSums> {
  const calls = [...vendor.calls.values()].flat().filter(({ plan }) => plan.marker !== warmUpMarker);
  const costs = calls.map(({ kind, usage }) => (kind === 'video' ? videoPrice : usage ? costOfUsage(usage) : 0));
  const db = await openDatabase(gateway);
  try {
    const rows = (await readRows(db)).filter(({ marker }) => marker !== '' && marker !== warmUpMarker);
    return {
      vendor: { calls: calls.length, cost: costs.reduce((sum, cost) => sum + cost, 0) },
      ledger: { rows: rows.length, cost: rows.reduce((sum, { cost }) => sum + (cost ?? 0), 0) },
    };
  } finally {
    await db.destroy();
  }
}

/** How many jobs have no end in the ledger, or are not in it though a client was told that they are accepted. */
export async function countUnfinished(deployment: Deployment, records: readonly ClientRecord[]): Promise<number> {
  const db = await openDatabase(deployment.gateway);
  try {
    const ended = new Set((await readRows(db)).filter(({ outcome }) => outcome !== null).map(({ id }) => id));
    const told = records.flatMap(({ jobIds }) => [...jobIds]);
    return told.filter((id) => !ended.has(id.replace('job_', ''))).length;
  } finally {
    await db.destroy();
  }
}

async function readRows(db: Database): Promise<Row[]> {
  const rows = await db
    .selectFrom('jobs')
    .leftJoin('job_bodies', 'job_bodies.job_id', 'jobs.id')
    .select(['id', 'account_id', 'outcome', 'error_code', 'cost', 'metadata', 'job_bodies.view_options'])
    .execute();
  return rows.map((row) => ({
    id: row.id,
    account: row.account_id,
    outcome: row.outcome,
    code: row.error_code,
    cost: row.cost,
    marker:
      (JSON.parse(row.metadata ?? '{}') as { marker?: string }).marker ??
      readPlan(row.view_options ?? '')?.marker ??
      '',
  }));
}

function judgeRows(
  record: ClientRecord,
  rows: readonly Row[],
  calls: readonly VendorCall[],
  complain: (rule: string, detail: string) => void,
): void {
  const text = JSON.stringify(rows.map(({ id, outcome, code, cost }) => ({ id, outcome, code, cost })));
  if (calls.length > 0 && rows.length === 0) complain('no_row', 'the vendor was called, and the ledger knows nothing');
  for (const id of record.jobIds) {
    if (!rows.some((row) => `job_${row.id}` === id)) complain('no_row', `${id} was accepted: ${text}`);
  }
  if (record.kind !== 'keyed' && rows.length > 1) complain('doubled_row', text);
  const completed = rows.filter(({ outcome }) => outcome === 'completed');
  if (completed.length > 1) complain('doubled_row', `completed twice: ${text}`);
  for (const row of rows) judgeRow(record, row, calls, complain);
  for (const final of record.finals) {
    if (final.type === 'whole' && completed.length === 0) complain('outcome_differs', `whole for its client: ${text}`);
    if (final.type === 'whole' && final.cost !== undefined && !completed.some(({ cost }) => cost === final.cost)) {
      complain('charge_differs', `its client was told ${final.cost}: ${text}`);
    }
    const charged = final.type === 'whole' ? costOfAnswer(calls, final.text) : undefined;
    if (charged !== undefined && completed.every(({ cost }) => cost !== charged)) {
      complain('charge_differs', `its client was given an answer of ${charged}: ${text}`);
    }
    const isOwn = final.type === 'error' && (final.status === 200 || final.status === undefined);
    if (isOwn && completed.length > 0 && record.kind !== 'keyed') {
      complain('outcome_differs', `its client was told ${final.code}: ${text}`);
    }
  }
}

/** What the call costs that gave this answer; undefined where none did, or none of which the usage is known. */
function costOfAnswer(calls: readonly VendorCall[], text: string): number | undefined {
  const call = calls.find((candidate) => candidate.kind === 'chat' && answerOf(candidate) === text);
  return call?.usage && costOfUsage(call.usage);
}

function costOfUsage(usage: NonNullable<VendorCall['usage']>): number {
  return usage.prompt_tokens * inputPrice + usage.completion_tokens * outputPrice;
}

/** The one row of a job: it has an end, and costs what the vendor has told, or was seen to send. */
function judgeRow(
  record: ClientRecord,
  row: Row,
  calls: readonly VendorCall[],
  complain: (rule: string, detail: string) => void,
): void {
  const told = `${row.id} ${row.outcome} ${row.code ?? ''} costs ${row.cost}`;
  if (row.outcome === null) {
    complain('no_end', row.id);
    return;
  }
  const cost = row.cost ?? 0;
  // Who leaves while the vendor is being called pays for the prompt, whether or not the call has got there.
  const isLeft = row.outcome === 'cancelled' && cost <= 80_000 * inputPrice;
  if (calls.length === 0 && cost > 0 && !isLeft) {
    complain('charge_differs', `${told}, the vendor was not called`);
    return;
  }
  if (record.kind === 'video') {
    const expected = row.outcome === 'completed' ? [videoPrice] : row.outcome === 'failed' ? [0] : [0, videoPrice];
    if (!expected.includes(cost)) complain('charge_differs', told);
    return;
  }
  if (row.outcome === 'completed') {
    const usages = calls.flatMap(({ usage }) => usage ?? []);
    const costs = usages.map(costOfUsage);
    const isRight = record.plan.usage ? costs.includes(cost) : cost > 0 && cost <= maxEstimated;
    if (!isRight) complain('charge_differs', `${told}, the vendor told ${JSON.stringify(usages)}`);
    return;
  }
  const isSeen = record.streams.some(({ text }) => text.includes(tokenAt(1, 0))) && record.kind !== 'keyed';
  if (isSeen && cost === 0) complain('uncharged', `${told}, its client has read of the answer`);
  if (cost > maxEstimated + promptTokens(record.plan)) complain('charge_differs', told);
}

async function judgeAccount(
  { redis }: Deployment,
  db: Database,
  account: string,
  rows: readonly Row[],
): Promise<Violation[]> {
  const sum = rows.filter((row) => row.account === account).reduce((all, { cost }) => all + (cost ?? 0), 0);
  const money = await readAccountMoney(redis, account);
  const inDatabase = (await findAccount(db, account))?.charged;
  if (money?.charged === sum && money.held === 0 && inDatabase === sum) return [];
  const detail = `${account}: ledger ${sum}, charged in Redis ${money?.charged}, in the database ${inDatabase}, held ${money?.held}`;
  return [{ rule: 'account_differs', detail }];
}
