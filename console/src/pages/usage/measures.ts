import type { UsageRow } from '../../api/usage.ts';
import type { Series } from '../../charts/time-chart.tsx';
import type { UnitName } from '../../charts/units.ts';

/** A measure of the usage chart. */
export interface Measure {
  readonly label: string;
  readonly series: readonly Series[];
  readonly kind: 'bar' | 'area' | 'line';
  readonly unit: UnitName;
  /** The value of a group. */
  readonly of: (row: UsageRow) => number;
}

export const measures = {
  cost: {
    label: 'Spend',
    series: [{ key: 'cost', name: 'Spend', color: 'var(--chart-1)' }],
    kind: 'bar',
    unit: 'money',
    of: (row) => row.cost,
  },
  requests: {
    label: 'Requests',
    series: [
      { key: 'succeeded', name: 'Succeeded', color: 'var(--chart-1)' },
      { key: 'cancelled', name: 'Cancelled', color: 'var(--chart-2)' },
      { key: 'failed', name: 'Failed', color: 'var(--chart-bad)' },
    ],
    kind: 'bar',
    unit: 'count',
    of: (row) => row.requests,
  },
  tokens: {
    label: 'Tokens',
    series: [
      { key: 'input_tokens', name: 'Input', color: 'var(--chart-1)' },
      { key: 'output_tokens', name: 'Output', color: 'var(--chart-2)' },
    ],
    kind: 'bar',
    unit: 'count',
    of: (row) => row.input_tokens + row.output_tokens,
  },
  saved: {
    label: 'Saved',
    series: [{ key: 'saved', name: 'Saved by prompt caches', color: 'var(--chart-1)' }],
    kind: 'bar',
    unit: 'money',
    of: (row) => row.saved,
  },
  latency: {
    label: 'Average time',
    series: [
      { key: 'average_ms', name: 'Whole request', color: 'var(--chart-1)' },
      { key: 'average_first_ms', name: 'First token', color: 'var(--chart-2)' },
    ],
    kind: 'line',
    unit: 'duration',
    of: (row) => row.average_ms ?? 0,
  },
} as const satisfies Record<string, Measure>;

export type MeasureName = keyof typeof measures;
export const measureNames = Object.keys(measures) as MeasureName[];
