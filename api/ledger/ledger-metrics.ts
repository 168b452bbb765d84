import { Counter, Gauge, type Registry } from 'prom-client';

/** Counters of an api process's part of the ledger. */
export interface LedgerMetrics {
  /** Records that the database refused. */
  readonly setAside: Counter<string>;
}

/** Sources of the gauges, read on each scrape. */
export interface LedgerGauges {
  readonly unreadable: { readonly size: number };
  readonly backlog: { readonly bytes: number };
  readonly spool: { readonly records: number; readonly bytes: number };
}

/** Creates the ledger's metrics. */
export function createLedgerMetrics(registry: Registry, { unreadable, backlog, spool }: LedgerGauges): LedgerMetrics {
  const registers = [registry];
  const gauge = (name: string, help: string, value: () => number): void => {
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(value());
      },
    });
  };
  gauge(
    'sluice_outbox_unreadable_records',
    'Job records of another version, which stay in the outbox until an api process can read them.',
    () => unreadable.size,
  );
  gauge('sluice_outbox_bytes', 'Memory that the outboxes take in Redis, as last looked at.', () => backlog.bytes);
  gauge('sluice_spool_records', 'Job records on disk that wait for the database.', () => spool.records);
  gauge('sluice_spool_bytes', 'Bytes of the job records on disk that wait for the database.', () => spool.bytes);
  return {
    setAside: new Counter({
      name: 'sluice_job_records_set_aside_total',
      help: 'Job records that the database refused; they are kept in the Redis list sluice:quarantine.',
      registers,
    }),
  };
}
