import { Group, Progress, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { type UsageRow, usageQuery } from '../../api/usage.ts';
import { Card } from '../../components/card.tsx';
import { DataTable, TableSkeleton } from '../../components/data-table.tsx';
import { ErrorPanel } from '../../components/error-panel.tsx';
import { TextLink } from '../../components/text-link.tsx';
import { money } from '../../format/money.ts';
import { count, percent, shortCount } from '../../format/number.ts';
import { duration } from '../../format/time.ts';
import type { Period } from '../usage/usage-search.ts';
import { refreshMs } from '../usage/use-span.ts';

const shown = 5;

/** The models with the highest cost in a span; if nothing cost anything, those with the most requests. */
export function TopModels({ span, period }: { span: { from: number; to: number }; period: Period }) {
  const usage = useQuery({
    ...usageQuery({ ...span, group_by: 'model' }),
    refetchInterval: refreshMs,
  });
  const rows = [...(usage.data?.data ?? [])].sort((a, b) => b.cost - a.cost || b.requests - a.requests).slice(0, shown);
  const all = usage.data?.total;
  const share = (row: UsageRow): [part: number, of: number] =>
    all === undefined || all.cost === 0 ? [row.requests, all?.requests ?? 0] : [row.cost, all.cost];
  return (
    <Card
      title="Top models"
      actions={
        <TextLink to="/usage" search={{ period, group: 'model' }} size="sm">
          All models
        </TextLink>
      }
    >
      {usage.error !== null && <ErrorPanel error={usage.error} onRetry={() => void usage.refetch()} />}
      {usage.isPending && <TableSkeleton rows={3} />}
      {rows.length > 0 && (
        <DataTable
          label="Top models"
          rows={rows}
          rowKey={(row) => String(row.group)}
          columns={[
            { title: 'Model', isMain: true, render: (row) => row.label },
            { title: 'Requests', align: 'right', render: (row) => count(row.requests) },
            { title: 'Tokens', align: 'right', render: (row) => shortCount(row.input_tokens + row.output_tokens) },
            { title: 'Average time', align: 'right', render: (row) => duration(row.average_ms) },
            { title: 'Spend', align: 'right', render: (row) => money(row.cost) },
            { title: 'Share', render: (row) => <Share part={share(row)[0]} of={share(row)[1]} /> },
          ]}
        />
      )}
    </Card>
  );
}

function Share({ part, of }: { part: number; of: number }) {
  return (
    <Group gap="xs" wrap="nowrap" miw={120}>
      {/* The text beside it contains the same. */}
      <Progress value={of === 0 ? 0 : (part / of) * 100} flex={1} miw={60} aria-hidden />
      <Text size="xs" c="dimmed" w={44} ta="right" className="numbers">
        {percent(part, of)}
      </Text>
    </Group>
  );
}
