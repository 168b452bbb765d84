import type { Counter, Registry } from 'prom-client';
import { addGauge, metricMakers } from '../../shared/runtime/metrics.ts';

/** Counters of an api process's part of the ledger. */
export interface LedgerMetrics {
  /** Records that the database refused. */
  readonly setAside: Counter<string>;
  /** Refused records that are gone. */
  readonly dropped: Counter<string>;
  /** Failed reads and writes. */
  readonly failures: Counter<string>;
  /** Jobs that Redis had lost. */
  readonly lost: Counter<string>;
}

/** Sources of the gauges, read on each scrape. */
export interface LedgerGauges {
  readonly unreadable: { readonly size: number };
  readonly backlog: {
    readonly bytes: number;
    readonly records: number;
    readonly oldestMs: number;
    readonly ageMs: number;
  };
  readonly spool: { readonly records: number; readonly bytes: number };
}

/** A measurement of the outboxes that is older than this, in ms, is not shown: it is made every 15 s, unless Redis is away. */
const maxAgeMs = 45_000;

/** Creates the ledger's metrics. */
export function createLedgerMetrics(registry: Registry, { unreadable, backlog, spool }: LedgerGauges): LedgerMetrics {
  const { counter } = metricMakers(registry);
  const add = (name: string, help: string, read: () => number): void => addGauge(registry, name, help, read);
  const measured = (value: number): number => (backlog.ageMs < maxAgeMs ? value : Number.NaN);
  add('sluice_outbox_records', 'Job records in Redis that are not in the database yet, measured every 15 s.', () =>
    measured(backlog.records),
  );
  add('sluice_outbox_oldest_seconds', 'Age of the oldest of these records, measured every 15 s.', () =>
    measured(backlog.oldestMs / 1000),
  );
  add('sluice_outbox_bytes', 'Memory of Redis that these records use, measured every 15 s.', () =>
    measured(backlog.bytes),
  );
  add(
    'sluice_outbox_unreadable_records',
    'Job records of another version, which stay in the outbox until an api process can read them.',
    () => unreadable.size,
  );
  add('sluice_spool_records', 'Job records on disk that wait for the database.', () => spool.records);
  add('sluice_spool_bytes', 'Bytes of the job records on disk that wait for the database.', () => spool.bytes);
  return {
    setAside: counter(
      'sluice_job_records_set_aside_total',
      'Job records that the database refused; the last 10,000 are in the Redis list sluice:quarantine.',
    ),
    dropped: counter(
      'sluice_job_records_dropped_total',
      'Refused job records that were dropped from that list, because it was full.',
    ),
    failures: counter(
      'sluice_ledger_failures_total',
      'Failed attempts to read records from Redis or to write them to the database; each is retried.',
    ),
    lost: counter('sluice_jobs_lost_total', 'Jobs that Redis had lost, which were therefore ended in the database.'),
  };
}
