/** Series of a case by name and labels, in promtool's notation: `0+5x60` begins at 0 and grows by 5 for 60 steps. */
export type CaseSeries = Readonly<Record<string, string>>;

/** When an alert fires, and when it does not. */
export interface AlertCase {
  /** Time between two values of the series; a minute by default. */
  readonly interval?: string;
  /** When both are evaluated; after 20 minutes by default. */
  readonly at?: string;
  readonly fires: CaseSeries;
  /** Labels of the alert besides its severity. */
  readonly labels?: Readonly<Record<string, string>>;
  readonly silent: CaseSeries;
}

/** Requests and errors of the chat, at these rates a step, for so many steps. */
function chats(requests: number, errors: number, steps: number, code = 'server_error'): CaseSeries {
  return {
    'sluice_requests_total{endpoint="chat",status="200"}': `0+${requests}x${steps}`,
    [`sluice_errors_total{endpoint="chat",code="${code}"}`]: `0+${errors}x${steps}`,
  };
}

/** A histogram of which so many a step are within the bound, and so many in all. */
function within(name: string, labels: string, bound: string, good: number, all: number, steps: number): CaseSeries {
  return {
    [`${name}_bucket{${labels},le="${bound}"}`]: `0+${good}x${steps}`,
    [`${name}_count{${labels}}`]: `0+${all}x${steps}`,
  };
}

const streams = (good: number, all: number, steps: number): CaseSeries =>
  within('sluice_time_to_first_frame_seconds', 'endpoint="chat",stream="yes"', '5', good, all, steps);
const waits = (good: number, all: number, steps: number): CaseSeries =>
  within('sluice_queue_wait_seconds', 'capability="chat"', '1', good, all, steps);

/** A gauge that stays at a value from the beginning on. */
const steady = (name: string, value: number): CaseSeries => ({ [name]: `${value}x40` });

/** A gauge of two values, in turns. */
const inTurns = (name: string, one: number, other: number): CaseSeries => ({
  [name]: Array<string>(50).fill(`${one} ${other}`).join(' '),
});

const hour = { at: '65m' };
const day = { interval: '15m', at: '25h' };

/** A case for each alert, by its name. The quiet ones are near the threshold, not at nothing. */
export const alertCases: Readonly<Record<string, AlertCase>> = {
  // 2 % of the requests fail, and 0.5 %: of the two limits, 14.4 and 6 times 0.1 %, the lower one is between them.
  SluiceAvailabilityBurnFast: { ...hour, fires: chats(100, 2, 80), silent: chats(1000, 5, 80) },
  // 0.4 % and 0.2 % within a day; 3 times 0.1 % is between them.
  SluiceAvailabilityBurnSlow: { ...day, fires: chats(1000, 4, 110), silent: chats(1000, 2, 110) },
  SluiceFirstTokenBurnFast: { ...hour, fires: streams(20, 100, 80), silent: streams(75, 100, 80) },
  SluiceFirstTokenBurnSlow: { ...day, fires: streams(80, 100, 110), silent: streams(90, 100, 110) },
  SluiceQueueWaitBurnFast: { ...hour, fires: waits(80, 100, 80), silent: waits(95, 100, 80) },
  SluiceQueueWaitBurnSlow: { ...day, fires: waits(95, 100, 110), silent: waits(98, 100, 110) },
  SluiceProcessDown: {
    fires: steady('up{job="sluice-api",instance="a:1"}', 0),
    labels: { job: 'sluice-api', instance: 'a:1' },
    silent: { ...steady('up{job="sluice-api",instance="a:1"}', 1), ...steady('up{job="other",instance="b:1"}', 0) },
  },
  SluiceNoApi: {
    fires: steady('sluice_build_info{role="worker",instance="w:1"}', 1),
    labels: { role: 'api' },
    silent: steady('sluice_build_info{role="api",instance="a:1"}', 1),
  },
  SluiceNoWorkers: {
    fires: {
      ...steady('sluice_queue_waiting{capability="image",instance="a:1"}', 0),
      ...steady('sluice_queue_waiting{capability="video",instance="a:1"}', 0),
      // Between two polls: only a worker brings them back to their queue.
      ...steady('sluice_queue_delayed{capability="video",instance="a:1"}', 3),
      ...steady('sluice_worker_slots{capability="chat"}', 500),
    },
    labels: { capability: 'video' },
    silent: {
      ...steady('sluice_queue_waiting{capability="chat",instance="a:1"}', 3),
      ...steady('sluice_queue_parked{capability="chat",instance="a:1"}', 3),
      ...steady('sluice_queue_waiting{capability="image",instance="a:1"}', 0),
      ...steady('sluice_worker_slots{capability="chat"}', 500),
    },
  },
  SluiceQueueOld: {
    fires: steady('sluice_queue_oldest_wait_seconds{capability="chat",instance="a:1"}', 45),
    labels: { capability: 'chat' },
    silent: {
      ...steady('sluice_queue_oldest_wait_seconds{capability="chat",instance="a:1"}', 20),
      ...steady('sluice_queue_oldest_wait_seconds{capability="video",instance="a:1"}', 600),
    },
  },
  SluiceWorkersFull: {
    fires: {
      ...steady('sluice_jobs_running{capability="chat",instance="a:1"}', 480),
      ...steady('sluice_worker_slots{capability="chat",instance="a:1"}', 500),
    },
    labels: { capability: 'chat' },
    silent: {
      ...steady('sluice_jobs_running{capability="chat",instance="a:1"}', 480),
      ...steady('sluice_worker_slots{capability="chat",instance="a:1"}', 500),
      ...steady('sluice_worker_slots{capability="chat",instance="b:1"}', 500),
    },
  },
  SluiceRefusing: {
    fires: { 'sluice_refusals_total{endpoint="chat",reason="queue_full"}': '0+20x40' },
    labels: { reason: 'queue_full' },
    silent: {
      'sluice_refusals_total{endpoint="chat",reason="queue_full"}': '0+1x40',
      'sluice_refusals_total{endpoint="chat",reason="rate_limit"}': '0+9000x40',
    },
  },
  SluiceJobsLost: { fires: { sluice_jobs_lost_total: '0x10 2x30' }, silent: { sluice_jobs_lost_total: '7x40' } },
  SluiceJobsAbandoned: {
    fires: { 'sluice_jobs_swept_total{action="stream_interrupted"}': '0x10 20x30' },
    silent: {
      'sluice_jobs_swept_total{action="stream_interrupted"}': '0x10 3x30',
      'sluice_jobs_swept_total{action="timeout"}': '0+90x40',
    },
  },
  SluiceRedisUnreachable: {
    fires: steady('sluice_redis_lag_seconds{instance="a:1",role="api"}', -1),
    labels: { instance: 'a:1', role: 'api' },
    silent: steady('sluice_redis_lag_seconds{instance="a:1",role="api"}', 0.05),
  },
  SluiceRedisSlow: {
    fires: steady('sluice_redis_lag_seconds{instance="a:1",role="api"}', 0.2),
    labels: { instance: 'a:1', role: 'api' },
    silent: { 'sluice_redis_lag_seconds{instance="a:1",role="api"}': '0.2 0.01 0.01 0.2 0.01 0.01 0.01x40' },
  },
  SluiceRedisMemory: {
    fires: steady('sluice_redis_memory_share{instance="a:1"}', 0.65),
    silent: steady('sluice_redis_memory_share{instance="a:1"}', 0.55),
  },
  SluiceRedisEvicting: {
    fires: { 'sluice_redis_evicted_keys{instance="a:1"}': '0x10 5x30' },
    silent: { 'sluice_redis_evicted_keys{instance="a:1"}': '5x40' },
  },
  SluiceDatabaseUnreachable: {
    // It is read-only; a drill has one that does not answer.
    fires: {
      ...steady('sluice_database_lag_seconds{instance="a:1"}', 0.01),
      ...steady('sluice_database_up{instance="a:1"}', 0),
    },
    labels: { instance: 'a:1' },
    silent: {
      ...steady('sluice_database_lag_seconds{instance="a:1"}', 0.4),
      ...steady('sluice_database_up{instance="a:1"}', 1),
    },
  },
  SluiceDatabaseBusy: {
    interval: '15s',
    fires: inTurns('sluice_database_waiting{instance="a:1"}', 50, 10),
    labels: { instance: 'a:1' },
    silent: inTurns('sluice_database_waiting{instance="a:1"}', 30, 5),
  },
  SluiceLedgerBehind: {
    fires: steady('sluice_outbox_oldest_seconds{instance="a:1"}', 90),
    silent: steady('sluice_outbox_oldest_seconds{instance="a:1"}', 15),
  },
  SluiceLedgerFailing: {
    fires: { sluice_ledger_failures_total: '0+5x40' },
    silent: { sluice_ledger_failures_total: '0x10 3x30' },
  },
  SluiceRecordsSetAside: {
    fires: { sluice_job_records_set_aside_total: '0x10 1x30' },
    silent: { sluice_job_records_set_aside_total: '4x40' },
  },
  SluiceRecordsDropped: {
    fires: { sluice_job_records_dropped_total: '0x10 1x30' },
    silent: { sluice_job_records_dropped_total: '4x40' },
  },
  SluiceRecordsUnreadable: {
    fires: steady('sluice_outbox_unreadable_records{instance="a:1"}', 1),
    silent: { 'sluice_outbox_unreadable_records{instance="a:1"}': '0x15 1x3 0x30' },
  },
  SluiceSpoolInUse: {
    fires: steady('sluice_spool_records{instance="a:1"}', 500),
    silent: { 'sluice_spool_records{instance="a:1"}': '0x15 500x2 0x30' },
  },
  SluiceVendorFailing: {
    fires: {
      'sluice_vendor_calls_total{vendor="openai",outcome="failed"}': '0+60x40',
      'sluice_vendor_calls_total{vendor="openai",outcome="answered"}': '0+40x40',
    },
    labels: { vendor: 'openai' },
    silent: {
      'sluice_vendor_calls_total{vendor="openai",outcome="failed"}': '0+40x40',
      'sluice_vendor_calls_total{vendor="openai",outcome="answered"}': '0+60x40',
      // All of very few.
      'sluice_vendor_calls_total{vendor="fal",outcome="failed"}': '0+1x40',
    },
  },
  SluiceRouteOpen: {
    fires: {
      ...steady('sluice_route_breaker_open{route="openai/gpt",instance="a:1"}', 1),
      // One in ten minutes is enough.
      'sluice_vendor_calls_total{vendor="openai",outcome="failed"}': '0x9 1x9 2x40',
    },
    labels: { route: 'openai/gpt', vendor: 'openai' },
    silent: {
      'sluice_route_breaker_open{route="openai/gpt",instance="a:1"}': '0 1 1 0.5 1 0 0x40',
      'sluice_vendor_calls_total{vendor="openai",outcome="failed"}': '0+1x40',
      // Nobody calls it any more.
      ...steady('sluice_route_breaker_open{route="fal/flux/dev",instance="a:1"}', 1),
      'sluice_vendor_calls_total{vendor="fal",outcome="failed"}': '5x40',
    },
  },
  SluiceVendorKeyRefused: {
    fires: steady('sluice_vendor_keys_refused{vendor="openai",instance="a:1"}', 1),
    labels: { vendor: 'openai' },
    silent: steady('sluice_vendor_keys_refused{vendor="openai",instance="a:1"}', 0),
  },
  SluiceEventLoopBlocked: {
    fires: steady('sluice_event_loop_lag_seconds{instance="a:1",role="api"}', 0.9),
    labels: { instance: 'a:1', role: 'api' },
    silent: { 'sluice_event_loop_lag_seconds{instance="a:1",role="api"}': '0.1x15 2 0.1x30' },
  },
  SluiceRestarting: {
    fires: { 'process_start_time_seconds{instance="a:1",role="ledger"}': '100x5 200x3 300x3 400x20' },
    labels: { instance: 'a:1', role: 'ledger' },
    silent: {
      'process_start_time_seconds{instance="a:1",role="ledger"}': '100x10 200x30',
      'process_start_time_seconds{instance="c:1"}': '0+60x40',
    },
  },
  SluiceFileDescriptors: {
    fires: {
      ...steady('process_open_fds{instance="a:1",role="api"}', 950),
      ...steady('process_max_fds{instance="a:1",role="api"}', 1024),
    },
    labels: { instance: 'a:1', role: 'api' },
    silent: {
      ...steady('process_open_fds{instance="a:1",role="api"}', 950),
      ...steady('process_max_fds{instance="a:1",role="api"}', 65_536),
    },
  },
  SluiceDiskLow: {
    fires: steady('sluice_data_free_bytes{instance="a:1"}', 1.5e9),
    labels: { instance: 'a:1' },
    silent: steady('sluice_data_free_bytes{instance="a:1"}', 3e9),
  },
  SluiceMixedVersions: {
    at: '90m',
    fires: {
      'sluice_build_info{version="1.0.0",instance="a:1"}': '1x100',
      'sluice_build_info{version="1.1.0",instance="b:1"}': '1x100',
    },
    silent: {
      'sluice_build_info{version="1.0.0",instance="a:1"}': '1x40',
      'sluice_build_info{version="1.1.0",instance="b:1"}': '1x100',
    },
  },
};
