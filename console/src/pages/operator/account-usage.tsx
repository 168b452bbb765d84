import { SimpleGrid, Stack } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { usageQuery } from '../../api/usage.ts';
import { TimeChart } from '../../charts/time-chart.tsx';
import { Card } from '../../components/card.tsx';
import { ErrorPanel } from '../../components/error-panel.tsx';
import { StatTile } from '../../components/stat-tile.tsx';
import { TextLink } from '../../components/text-link.tsx';
import { money } from '../../format/money.ts';
import { count, percent, shortCount } from '../../format/number.ts';
import { usageSeries } from '../usage/usage-series.ts';
import { spanOf } from '../usage/usage-span.ts';
import type { Account } from './operator-api.ts';

const period = '30d';

/** An account's usage and spending in the last 30 days. */
export function AccountUsage({ account }: { account: Account }) {
  const span = useMemo(() => spanOf({ period }), []);
  const usage = useQuery(usageQuery({ ...span, group_by: 'day', account: account.id }, '/admin/v1/usage'));
  const total = usage.data?.total;
  const isLoading = usage.isPending;
  return (
    <Card
      title="Usage of the last 30 days"
      actions={
        <TextLink to="/operator/usage" search={{ period, account: account.id }} size="sm">
          All its usage
        </TextLink>
      }
    >
      <Stack gap="sm">
        {usage.error !== null && <ErrorPanel error={usage.error} onRetry={() => void usage.refetch()} />}
        {usage.error === null && (
          <SimpleGrid cols={{ base: 2, md: 4 }} spacing="sm">
            <StatTile label="Spend" value={money(total?.cost)} isLoading={isLoading} />
            <StatTile label="Requests" value={count(total?.requests)} isLoading={isLoading} />
            <StatTile
              label="Tokens"
              value={shortCount(total === undefined ? null : total.input_tokens + total.output_tokens)}
              isLoading={isLoading}
            />
            <StatTile
              label="Errors"
              value={count(total?.failed)}
              hint={total?.requests ? `${percent(total.failed, total.requests)} of requests` : undefined}
              isLoading={isLoading}
            />
          </SimpleGrid>
        )}
        {usage.data !== undefined && usage.data.total.requests > 0 && (
          <TimeChart
            title="Spend"
            points={usageSeries(usage.data.data, span, 'day')}
            kind="bar"
            unit="money"
            series={[{ key: 'cost', name: 'Spend', color: 'var(--chart-1)' }]}
          />
        )}
      </Stack>
    </Card>
  );
}
