import type { AlertRule, RecordingRule } from './rule.ts';

/** Shares that dashboards and alerts use. */
export const causeRules: readonly RecordingRule[] = [
  {
    record: 'sluice:worker_slots:used_ratio',
    expr: 'sum by (capability) (sluice_jobs_running) / sum by (capability) (sluice_worker_slots)',
  },
  {
    record: 'sluice:vendor_calls:failed_ratio_rate5m',
    expr: 'sum by (vendor) (rate(sluice_vendor_calls_total{outcome="failed"}[5m])) / sum by (vendor) (rate(sluice_vendor_calls_total[5m]))',
  },
];

/** Alerts on queues and workers. */
const workAlerts: readonly AlertRule[] = [
  {
    alert: 'SluiceProcessDown',
    expr: 'up{job=~"sluice.*"} == 0',
    for: '1m',
    severity: 'page',
    summary: 'A process does not answer Prometheus.',
  },
  {
    alert: 'SluiceNoApi',
    // Where Prometheus discovers its targets, a process that is gone is none, so that its `up` is gone, too.
    expr: 'absent(sluice_build_info{role="api"})',
    for: '1m',
    severity: 'page',
    summary: 'No api process answers Prometheus: no request can be sent.',
  },
  {
    alert: 'SluiceNoWorkers',
    expr: '(max by (capability) (sluice_queue_waiting) > 0 or max by (capability) (sluice_queue_flex) > 0 or max by (capability) (sluice_queue_parked) > 0 or max by (capability) (sluice_queue_delayed) > 0) unless on (capability) sum by (capability) (sluice_worker_slots) > 0',
    for: '1m',
    severity: 'page',
    summary: 'Jobs wait, and no worker of their capability is there.',
  },
  {
    alert: 'SluiceQueueOld',
    expr: 'max by (capability) (sluice_queue_oldest_wait_seconds{capability!="video"}) > 30',
    for: '30s',
    severity: 'page',
    summary: 'A job has waited for more than 30 s: its caller gets a 503 after SLUICE_QUEUE_WAIT_SECONDS.',
  },
  {
    alert: 'SluiceWorkersFull',
    expr: 'sluice:worker_slots:used_ratio > 0.9',
    for: '10m',
    severity: 'ticket',
    summary: 'More than 90 % of the worker slots of a capability have been in use for 10 minutes.',
  },
  {
    alert: 'SluiceRefusing',
    expr: 'sum by (reason) (rate(sluice_refusals_total{reason=~"queue_full|queue_wait|cpu|queue_unavailable|redis_memory|database|disk|large_bodies|no_worker|lost"}[5m])) > 0.1',
    for: '5m',
    severity: 'page',
    summary: 'The gateway refuses requests for lack of capacity, not for their callers’ limits.',
  },
  {
    alert: 'SluiceJobsLost',
    expr: 'sum(increase(sluice_jobs_lost_total[15m])) > 0',
    severity: 'page',
    summary: 'Redis has lost jobs that were accepted.',
  },
  {
    alert: 'SluiceJobsAbandoned',
    expr: 'sum(increase(sluice_jobs_swept_total{action=~"stream_interrupted|outcome_unknown|service_unavailable|requeued|released"}[15m])) > 5',
    severity: 'ticket',
    summary: 'Workers or api processes were lost with jobs that others had to end.',
  },
];

/** Alerts on Redis. */
const redisAlerts: readonly AlertRule[] = [
  {
    alert: 'SluiceRedisUnreachable',
    expr: 'min by (instance, role) (sluice_redis_lag_seconds) < 0',
    for: '30s',
    severity: 'page',
    summary: 'Redis does not answer a process within a second, or takes no writes.',
  },
  {
    alert: 'SluiceRedisSlow',
    expr: 'max by (instance, role) (sluice_redis_lag_seconds) > 0.1',
    for: '5m',
    severity: 'ticket',
    summary: 'Redis answers a process after more than 100 ms.',
  },
  {
    alert: 'SluiceRedisMemory',
    expr: 'max(sluice_redis_memory_share) > 0.6',
    for: '1m',
    severity: 'page',
    summary: 'Redis is over 60 % full: from 70 % on new work is refused.',
  },
  {
    alert: 'SluiceRedisEvicting',
    expr: 'max(increase(sluice_redis_evicted_keys[15m])) > 0',
    severity: 'page',
    summary: 'Redis evicts keys, and with them jobs and balances: its maxmemory-policy must be noeviction.',
  },
];

/** Alerts on the database and the ledger. */
const ledgerAlerts: readonly AlertRule[] = [
  {
    alert: 'SluiceDatabaseUnreachable',
    expr: 'min by (instance) (sluice_database_lag_seconds) < 0 or min by (instance) (sluice_database_up) == 0',
    for: '1m',
    severity: 'page',
    summary: 'The database does not answer an api process, or takes no writes.',
  },
  {
    alert: 'SluiceDatabaseBusy',
    // In the mean: where the database hangs, those that wait give up together every few seconds, and a scrape may come just then.
    expr: 'max by (instance) (avg_over_time(sluice_database_waiting[1m])) > 20',
    for: '5m',
    severity: 'ticket',
    summary: 'Statements wait for a connection to the database.',
  },
  {
    alert: 'SluiceLedgerBehind',
    expr: 'max(sluice_outbox_oldest_seconds) > 60',
    severity: 'page',
    summary: 'Records of ended jobs have not reached the database for a minute.',
  },
  {
    alert: 'SluiceLedgerFailing',
    expr: 'sum(increase(sluice_ledger_failures_total[5m])) > 5',
    for: '5m',
    severity: 'ticket',
    summary: 'Writing job records fails again and again.',
  },
  {
    alert: 'SluiceRecordsSetAside',
    expr: 'sum(increase(sluice_job_records_set_aside_total[15m])) > 0',
    severity: 'ticket',
    summary: 'The database has refused job records.',
  },
  {
    alert: 'SluiceRecordsDropped',
    expr: 'sum(increase(sluice_job_records_dropped_total[15m])) > 0',
    severity: 'page',
    summary: 'Refused job records are dropped, because the list that keeps them is full.',
  },
  {
    alert: 'SluiceRecordsUnreadable',
    expr: 'max(sluice_outbox_unreadable_records) > 0',
    for: '10m',
    severity: 'ticket',
    summary: 'The outbox has job records of a version that no running api process can read.',
  },
  {
    alert: 'SluiceSpoolInUse',
    expr: 'sum(sluice_spool_records) > 0',
    for: '5m',
    severity: 'ticket',
    summary: 'Job records wait on the disk of an api process, because the database does not take them.',
  },
];

/** Alerts on vendors. */
const vendorAlerts: readonly AlertRule[] = [
  {
    alert: 'SluiceVendorFailing',
    expr: 'sluice:vendor_calls:failed_ratio_rate5m > 0.5 and on (vendor) sum by (vendor) (rate(sluice_vendor_calls_total[5m])) > 0.1',
    for: '5m',
    severity: 'ticket',
    summary: 'More than half of the calls of a vendor fail.',
  },
  {
    alert: 'SluiceRouteOpen',
    // A breaker stays open until a call succeeds: without failed calls nobody calls the route any more, and nothing is skipped.
    expr: 'label_replace(max by (route) (sluice_route_breaker_open) == 1, "vendor", "$1", "route", "([^/]+)/.*") and on (vendor) sum by (vendor) (increase(sluice_vendor_calls_total{outcome="failed"}[30m])) > 0',
    for: '5m',
    severity: 'ticket',
    summary: 'A route is skipped, because its calls fail.',
  },
  {
    alert: 'SluiceVendorKeyRefused',
    expr: 'max by (vendor) (sluice_vendor_keys_refused) > 0',
    for: '1m',
    severity: 'page',
    summary: 'A vendor refuses an API key.',
  },
];

/** Alerts on processes and their hosts. */
const processAlerts: readonly AlertRule[] = [
  {
    alert: 'SluiceEventLoopBlocked',
    expr: 'max by (instance, role) (sluice_event_loop_lag_seconds) > 0.5',
    for: '5m',
    severity: 'ticket',
    summary: 'A process is short of CPU: its event loop was blocked for over half a second, again and again.',
  },
  {
    alert: 'SluiceRestarting',
    expr: 'max by (instance, role) (changes(process_start_time_seconds{role=~"api|worker|ledger"}[15m])) > 2',
    severity: 'page',
    summary: 'A process restarts again and again.',
  },
  {
    alert: 'SluiceFileDescriptors',
    expr: 'max by (instance, role) (process_open_fds{role=~"api|worker|ledger"} / process_max_fds{role=~"api|worker|ledger"}) > 0.8',
    for: '1m',
    severity: 'page',
    summary: 'A process has used more than 80 % of its file descriptors: then it takes no further connection.',
  },
  {
    alert: 'SluiceDiskLow',
    expr: 'min by (instance) (sluice_data_free_bytes) < 2e9',
    for: '1m',
    severity: 'page',
    summary: 'Less than 2 GB are free on the disk of a data folder.',
  },
  {
    alert: 'SluiceMixedVersions',
    expr: 'count(count by (version) (sluice_build_info)) > 1',
    for: '1h',
    severity: 'ticket',
    summary: 'Processes of different versions have run side by side for an hour.',
  },
];

/** Alerts on causes; `objectives.ts` has those on what callers notice. */
export const causeAlerts: readonly AlertRule[] = [
  ...workAlerts,
  ...redisAlerts,
  ...ledgerAlerts,
  ...vendorAlerts,
  ...processAlerts,
];
