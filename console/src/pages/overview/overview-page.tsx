import { SegmentedControl, SimpleGrid, Stack } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { isUsed, type UsageSums, usageQuery } from '../../api/usage.ts';
import { ErrorPanel } from '../../components/error-panel.tsx';
import { PageHeader } from '../../components/page-header.tsx';
import { StatTile } from '../../components/stat-tile.tsx';
import { money } from '../../format/money.ts';
import { count, percent, shortCount } from '../../format/number.ts';
import { duration } from '../../format/time.ts';
import { refreshMs, useSpan } from '../usage/use-span.ts';
import { FirstSteps } from './first-steps.tsx';
import { OverviewCharts } from './overview-charts.tsx';
import { TopModels } from './top-models.tsx';

const route = getRouteApi('/shell/');

/** The account's recent spending and requests; without any requests, the first steps. */
export function OverviewPage() {
  const { period = '24h' } = route.useSearch();
  const navigate = route.useNavigate();
  const span = useSpan({ period });
  const size = period === '24h' ? 'hour' : 'day';
  const usage = useQuery({
    ...usageQuery({ ...span, group_by: size }),
    refetchInterval: refreshMs,
  });
  const { data } = usage;
  return (
    <>
      <PageHeader title="Overview" description="Spend, requests and speed of this account.">
        <SegmentedControl
          aria-label="Period"
          value={period}
          onChange={(value) => void navigate({ search: { period: value as typeof period }, replace: true })}
          data={[
            { value: '24h', label: '24 hours' },
            { value: '7d', label: '7 days' },
            { value: '30d', label: '30 days' },
          ]}
        />
      </PageHeader>
      <Stack gap="md">
        {usage.error !== null && <ErrorPanel error={usage.error} onRetry={() => void usage.refetch()} />}
        {data !== undefined && !isUsed(data.total) && <FirstSteps />}
        {(data === undefined || isUsed(data.total)) && usage.error === null && (
          <>
            <Tiles total={data?.total} />
            <OverviewCharts usage={data} span={span} size={size} />
            <TopModels span={span} period={period} />
          </>
        )}
      </Stack>
    </>
  );
}

function Tiles({ total }: { total: UsageSums | undefined }) {
  const isLoading = total === undefined;
  const tokens = total === undefined ? null : total.input_tokens + total.output_tokens;
  return (
    <SimpleGrid cols={{ base: 2, md: 3, lg: 6 }} spacing="sm">
      <StatTile label="Spend" value={money(total?.cost)} isLoading={isLoading} />
      <StatTile
        label="Requests"
        value={count(total?.requests)}
        hint={total?.cache_hits ? `and ${count(total.cache_hits)} cached answers` : undefined}
        isLoading={isLoading}
      />
      <StatTile
        label="Tokens"
        value={shortCount(tokens)}
        hint={`${shortCount(total?.input_tokens)} in, ${shortCount(total?.output_tokens)} out`}
        isLoading={isLoading}
      />
      <StatTile
        label="Cached input"
        value={percent(total?.cached_tokens ?? 0, total?.input_tokens ?? 0)}
        hint={`${money(total?.saved)} saved`}
        isLoading={isLoading}
      />
      <StatTile
        label="Errors"
        value={count(total?.failed)}
        hint={total === undefined ? undefined : `${percent(total.failed, total.requests)} of requests`}
        isLoading={isLoading}
      />
      <StatTile
        label="Average time"
        value={duration(total?.average_ms)}
        hint={
          typeof total?.average_first_ms === 'number' ? `first token ${duration(total.average_first_ms)}` : undefined
        }
        isLoading={isLoading}
      />
    </SimpleGrid>
  );
}
