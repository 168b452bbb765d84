import { Text } from '@mantine/core';
import type { Latency, Percentiles } from '../../api/usage.ts';
import { type Column, DataTable } from '../../components/data-table.tsx';
import { count } from '../../format/number.ts';
import { duration } from '../../format/time.ts';

interface Line {
  readonly name: string;
  readonly times: Percentiles;
}

const columns: readonly Column<Line>[] = [
  { title: 'Time to', isMain: true, render: ({ name }) => name },
  { title: 'p50', align: 'right', render: ({ times }) => duration(times.p50) },
  { title: 'p95', align: 'right', render: ({ times }) => duration(times.p95) },
  { title: 'p99', align: 'right', render: ({ times }) => duration(times.p99) },
];

/** The times within which 50, 95 and 99 percent of requests stayed. */
export function LatencyTable({ latency }: { latency: Latency }) {
  const { requests, first, whole } = latency;
  const lines = [
    { name: 'First token', times: first },
    { name: 'End of the answer', times: whole },
  ].flatMap(({ name, times }) => (times === null ? [] : [{ name, times }]));
  return (
    <>
      <DataTable label="Latency" rows={lines} rowKey={({ name }) => name} columns={columns} />
      <Text size="xs" c="dimmed" mt="xs">
        Of the newest {count(requests)} requests: 95 of 100 took no longer than p95.
      </Text>
    </>
  );
}
