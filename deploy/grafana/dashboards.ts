import { type Dashboard, dashboardJson, type Panel } from './panels.ts';

const rate = (metric: string, by: string, more = ''): string =>
  `sum by (${by}) (rate(${metric}${more}[$__rate_interval]))`;

/** A quantile of a histogram, by some labels. */
const quantile = (share: number, metric: string, by: string, more = ''): string =>
  `histogram_quantile(${share}, sum by (${by}, le) (rate(${metric}_bucket${more}[$__rate_interval])))`;

/** A panel with one query. */
function panel(title: string, expr: string, legend: string, more: Partial<Panel> = {}): Panel {
  return { title, queries: [{ expr, legend }], ...more };
}

const stat = { type: 'stat', unit: 'percentunit' } as const;

const overview: Dashboard = {
  uid: 'sluice-overview',
  title: 'Sluice: what callers notice',
  rows: [
    {
      title: 'Objectives: share of bad events in the last hour',
      panels: [
        panel('Failed requests (objective 0.1 %)', 'sluice:failed_requests:ratio_rate1h', 'failed', {
          ...stat,
          redFrom: 0.001,
        }),
        panel('First token after 5 s (objective 5 %)', 'sluice:late_first_tokens:ratio_rate1h', 'late', {
          ...stat,
          redFrom: 0.05,
        }),
        panel('Over 1 s in the queue (objective 1 %)', 'sluice:long_queue_waits:ratio_rate1h', 'long', {
          ...stat,
          redFrom: 0.01,
        }),
      ],
    },
    {
      title: 'Requests',
      panels: [
        panel('Requests by endpoint', rate('sluice_requests_total', 'endpoint'), '{{endpoint}}', {
          unit: 'reqps',
          isStacked: true,
        }),
        panel('Errors by code', rate('sluice_errors_total', 'code'), '{{code}}', { unit: 'reqps', isStacked: true }),
        panel('Refusals by reason', rate('sluice_refusals_total', 'reason'), '{{reason}}', {
          unit: 'reqps',
          isStacked: true,
          description: 'What a 429 or a 503 was due to.',
        }),
        {
          title: 'Time to the first token of streams',
          unit: 's',
          queries: [0.5, 0.95, 0.99].map((share) => ({
            expr: quantile(share, 'sluice_time_to_first_frame_seconds', 'role', '{stream="yes"}'),
            legend: `p${share * 100}`,
          })),
        },
        panel(
          'Duration of requests, p95',
          quantile(0.95, 'sluice_request_duration_seconds', 'endpoint'),
          '{{endpoint}}',
          {
            unit: 's',
          },
        ),
        panel('Verdicts of admission', rate('sluice_admissions_total', 'verdict'), '{{verdict}}', { unit: 'reqps' }),
      ],
    },
    {
      title: 'Connections',
      panels: [
        {
          title: 'Open streams, sockets and connections',
          queries: [
            { expr: 'sum(sluice_streams_open)', legend: 'streams' },
            { expr: 'sum(sluice_sockets_open)', legend: 'sockets' },
            { expr: 'sum(sluice_connections_open)', legend: 'connections' },
            { expr: 'sum(sluice_requests_running)', legend: 'requests' },
          ],
        },
        panel('Bytes sent', rate('sluice_response_bytes_total', 'endpoint'), '{{endpoint}}', { unit: 'bytes' }),
        panel('Connections cut', rate('sluice_connections_cut_total', 'reason'), '{{reason}}', { unit: 'ops' }),
      ],
    },
  ],
};

const work: Dashboard = {
  uid: 'sluice-work',
  title: 'Sluice: queues, workers, vendors',
  rows: [
    {
      title: 'Queues',
      panels: [
        panel('Waiting jobs', 'max by (capability) (sluice_queue_waiting)', '{{capability}}'),
        panel('Oldest waiting job', 'max by (capability) (sluice_queue_oldest_wait_seconds)', '{{capability}}', {
          unit: 's',
        }),
        panel('Wait in the queue, p95', quantile(0.95, 'sluice_queue_wait_seconds', 'capability'), '{{capability}}', {
          unit: 's',
        }),
      ],
    },
    {
      title: 'Workers',
      panels: [
        panel('Used slots', 'sluice:worker_slots:used_ratio', '{{capability}}', { unit: 'percentunit' }),
        panel('Running jobs', 'sum by (capability) (sluice_jobs_running)', '{{capability}}', { isStacked: true }),
        panel('Claimed jobs', 'max by (capability) (sluice_queue_active)', '{{capability}}'),
        panel('Ended jobs', rate('sluice_jobs_total', 'capability, outcome'), '{{capability}} {{outcome}}', {
          unit: 'ops',
        }),
        panel('Failed jobs by code', rate('sluice_job_errors_total', 'vendor, code'), '{{vendor}} {{code}}', {
          unit: 'ops',
        }),
        panel('Swept and lost jobs', rate('sluice_jobs_swept_total', 'action'), '{{action}}', { unit: 'ops' }),
      ],
    },
    {
      title: 'Vendors',
      panels: [
        panel('Calls by outcome', rate('sluice_vendor_calls_total', 'vendor, outcome'), '{{vendor}} {{outcome}}', {
          unit: 'ops',
        }),
        panel('Failed calls', 'sluice:vendor_calls:failed_ratio_rate5m', '{{vendor}}', { unit: 'percentunit' }),
        panel('First frame, p95', quantile(0.95, 'sluice_vendor_first_frame_seconds', 'vendor'), '{{vendor}}', {
          unit: 's',
        }),
        panel('Retries by reason', rate('sluice_vendor_retries_total', 'vendor, reason'), '{{vendor}} {{reason}}', {
          unit: 'ops',
        }),
        panel('Open routes', 'max by (route) (sluice_route_breaker_open) > 0', '{{route}}'),
        {
          title: 'Keys',
          queries: [
            { expr: 'max by (vendor) (sluice_vendor_keys_refused)', legend: '{{vendor}} refused' },
            { expr: 'max by (vendor) (sluice_vendor_keys_cooling)', legend: '{{vendor}} cooling' },
          ],
        },
      ],
    },
    {
      title: 'Tokens and cost',
      panels: [
        panel('Tokens a second', rate('sluice_tokens_total', 'kind'), '{{kind}}', { unit: 'ops' }),
        panel('Dollars an hour by vendor', `3600 * ${rate('sluice_cost_dollars_total', 'vendor')}`, '{{vendor}}', {
          unit: 'currencyUSD',
          isStacked: true,
        }),
        panel(
          'Dollars an hour, dearest models',
          `topk(10, 3600 * ${rate('sluice_cost_dollars_total', 'model')})`,
          '{{model}}',
          {
            unit: 'currencyUSD',
          },
        ),
      ],
    },
  ],
};

const foundations: Dashboard = {
  uid: 'sluice-foundations',
  title: 'Sluice: Redis, database, processes',
  rows: [
    {
      title: 'Redis',
      panels: [
        panel('Round trip', 'sluice_redis_lag_seconds', '{{instance}} {{role}}', {
          unit: 's',
          description: 'Negative: no answer, or it takes no writes.',
        }),
        panel('Used memory', 'max(sluice_redis_memory_share)', 'of its limit', { unit: 'percentunit' }),
        panel('Evicted keys', 'max(sluice_redis_evicted_keys)', 'since its start'),
      ],
    },
    {
      title: 'Ledger',
      panels: [
        {
          title: 'Records on their way',
          queries: [
            { expr: 'max(sluice_outbox_records)', legend: 'in Redis' },
            { expr: 'sum(sluice_spool_records)', legend: 'on disk' },
            { expr: 'max(sluice_outbox_unreadable_records)', legend: 'unreadable' },
          ],
        },
        panel('Age of the oldest record', 'max(sluice_outbox_oldest_seconds)', 'oldest', { unit: 's' }),
        {
          title: 'Written and refused records',
          unit: 'ops',
          queries: [
            { expr: 'sum(rate(sluice_job_records_total[$__rate_interval]))', legend: 'written' },
            { expr: 'sum(rate(sluice_job_records_set_aside_total[$__rate_interval]))', legend: 'set aside' },
            { expr: 'sum(rate(sluice_job_records_dropped_total[$__rate_interval]))', legend: 'dropped' },
            { expr: 'sum(rate(sluice_ledger_failures_total[$__rate_interval]))', legend: 'failed attempts' },
            { expr: 'sum(rate(sluice_jobs_lost_total[$__rate_interval]))', legend: 'lost jobs' },
          ],
        },
        panel('Round trip of the database', 'sluice_database_lag_seconds', '{{instance}}', {
          unit: 's',
          description: 'Negative: no answer.',
        }),
        panel('Statements, p95', quantile(0.95, 'sluice_database_statement_seconds', 'outcome'), '{{outcome}}', {
          unit: 's',
        }),
        {
          title: 'Connections to the database',
          queries: [
            { expr: 'sum(sluice_database_connections_busy)', legend: 'in use' },
            { expr: 'sum(sluice_database_connections_max)', legend: 'at most' },
            { expr: 'sum(sluice_database_waiting)', legend: 'statements that wait' },
          ],
        },
      ],
    },
    {
      title: 'Processes',
      panels: [
        panel('Event loop, longest delay', 'sluice_event_loop_lag_seconds', '{{instance}} {{role}}', { unit: 's' }),
        panel(
          'CPU',
          'rate(process_cpu_seconds_total{role=~"api|worker|ledger"}[$__rate_interval])',
          '{{instance}} {{role}}',
        ),
        panel('Memory', 'process_resident_memory_bytes{role=~"api|worker|ledger"}', '{{instance}} {{role}}', {
          unit: 'bytes',
        }),
        panel('File descriptors', 'process_open_fds{role=~"api|worker|ledger"}', '{{instance}} {{role}}'),
        panel('Free disk', 'min by (instance) (sluice_data_free_bytes)', '{{instance}}', { unit: 'bytes' }),
        panel('Versions', 'count by (version, role) (sluice_build_info)', '{{role}} {{version}}', { isStacked: true }),
      ],
    },
  ],
};

/** The files of dashboards for Grafana, by their names. */
export const dashboardFiles: Readonly<Record<string, () => string>> = Object.fromEntries(
  [overview, work, foundations].map((dashboard) => [`${dashboard.uid}.json`, () => dashboardJson(dashboard)]),
);
