import { SimpleGrid, Skeleton } from '@mantine/core';
import type { Usage } from '../../api/usage.ts';
import { TimeChart } from '../../charts/time-chart.tsx';
import { usageSeries } from '../usage/usage-series.ts';

/** Spend, requests with errors, tokens and latency over time. */
export function OverviewCharts({
  usage,
  span,
  size,
}: {
  usage: Usage | undefined;
  span: { from: number; to: number };
  size: 'hour' | 'day';
}) {
  if (usage === undefined) {
    return (
      <SimpleGrid cols={{ base: 1, md: 2 }} spacing="md">
        {['spend', 'requests', 'tokens', 'latency'].map((chart) => (
          <Skeleton key={chart} height={290} />
        ))}
      </SimpleGrid>
    );
  }
  const points = usageSeries(usage.data, span, size);
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }} spacing="md">
      <TimeChart
        title="Spend"
        points={points}
        kind="bar"
        unit="money"
        series={[{ key: 'cost', name: 'Spend', color: 'var(--chart-1)' }]}
      />
      <TimeChart
        title="Requests and errors"
        points={points}
        kind="bar"
        unit="count"
        series={[
          { key: 'succeeded', name: 'Succeeded', color: 'var(--chart-1)' },
          { key: 'cancelled', name: 'Cancelled', color: 'var(--chart-2)' },
          { key: 'failed', name: 'Failed', color: 'var(--chart-bad)' },
        ]}
      />
      <TimeChart
        title="Tokens"
        points={points}
        kind="area"
        unit="count"
        series={[
          { key: 'input_tokens', name: 'Input', color: 'var(--chart-1)' },
          { key: 'output_tokens', name: 'Output', color: 'var(--chart-2)' },
        ]}
      />
      <TimeChart
        title="Latency (average)"
        points={points}
        kind="line"
        unit="duration"
        series={[
          { key: 'average_ms', name: 'Whole request', color: 'var(--chart-1)' },
          { key: 'average_first_ms', name: 'First token', color: 'var(--chart-2)' },
        ]}
      />
    </SimpleGrid>
  );
}
