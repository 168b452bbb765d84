import type { Database } from '../../../shared/database/database.ts';
import { tagCondition } from '../job-tags.ts';
import { hourMs } from './usage-hours.ts';
import { conditionsOf, firstIdAt, type UsageQuestion } from './usage-report.ts';

/** Newest requests of a span that are sampled, which takes about 50 ms however many there are. */
const maxSampled = 20_000;
/** A job's id has the arrival time of its request, `created_at` the time it was read: an upload may take long in between. */
const uploadMs = hourMs;

/** Percentiles in ms (nearest rank). */
interface Percentiles {
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
}

/** Duration of requests. */
export interface Latency {
  /** Number of counted requests. */
  readonly requests: number;
  /** From arrival to end; null if none were counted. */
  readonly whole: Percentiles | null;
  /** From arrival to the first piece of a streamed answer. */
  readonly first: Percentiles | null;
}

/** Latency of ended requests in a span: those that match the question among the 20,000 newest. */
export async function readLatency(db: Database, question: UsageQuestion): Promise<Latency> {
  const { account, from, to, tag } = question;
  let newest = db
    .selectFrom('jobs')
    .selectAll()
    .where('id', '>=', firstIdAt(from - uploadMs))
    .where('id', '<', firstIdAt(to))
    .orderBy('id', 'desc')
    .limit(maxSampled);
  if (account !== undefined) newest = newest.where('account_id', '=', account);
  const rows = await db
    .selectFrom(newest.as('jobs'))
    .select(['created_at', 'first_at', 'ended_at'])
    .where('outcome', 'is not', null)
    .where('created_at', '>=', from)
    .where('created_at', '<', to)
    .where((expression) =>
      expression.and([...conditionsOf(question, expression), ...(tag === undefined ? [] : [tagCondition(tag)])]),
    )
    .execute();
  const timesTo = (column: 'first_at' | 'ended_at'): number[] =>
    rows.flatMap(({ created_at: began, [column]: at }) => (at === null ? [] : [Math.max(0, at - began)]));
  return {
    requests: rows.length,
    whole: percentilesOf(timesTo('ended_at')),
    first: percentilesOf(timesTo('first_at')),
  };
}

function percentilesOf(times: readonly number[]): Percentiles | null {
  if (times.length === 0) return null;
  const sorted = Float64Array.from(times).sort();
  const at = (share: number): number => sorted[Math.ceil(share * sorted.length) - 1] as number;
  return { p50: at(0.5), p95: at(0.95), p99: at(0.99) };
}
