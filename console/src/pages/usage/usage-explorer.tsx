import { Group, NativeSelect, SegmentedControl, Skeleton, Stack } from '@mantine/core';
import { IconChartBarOff } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { address } from '../../api/request.ts';
import { isUsed, type Usage, usageFile, usageQuery } from '../../api/usage.ts';
import { GroupChart } from '../../charts/group-chart.tsx';
import { TimeChart } from '../../charts/time-chart.tsx';
import { Card } from '../../components/card.tsx';
import { DownloadButton } from '../../components/download-button.tsx';
import { EmptyState } from '../../components/empty-state.tsx';
import { ErrorPanel } from '../../components/error-panel.tsx';
import { PageHeader } from '../../components/page-header.tsx';
import { TextLink } from '../../components/text-link.tsx';
import { CacheTiles } from './cache-tiles.tsx';
import { LatencyTable } from './latency-table.tsx';
import { type MeasureName, measureNames, measures } from './measures.ts';
import { UsageFilters } from './usage-filters.tsx';
import type { UsageScope } from './usage-scope.ts';
import { type Grouping, type SearchChange, type UsageSearch, withChange } from './usage-search.ts';
import { usageSeries } from './usage-series.ts';
import { UsageTable } from './usage-table.tsx';
import { refreshMs, useSpan } from './use-span.ts';

interface UsageExplorerProps {
  readonly title: string;
  readonly description: string;
  readonly scope: UsageScope;
  readonly search: UsageSearch;
  readonly onSearch: (search: UsageSearch) => void;
}

/** Usage by time, model, key and more, as a chart and a table; every line links to its jobs. */
export function UsageExplorer({ title, description, scope, search, onSearch }: UsageExplorerProps) {
  const { group = 'day', period, from, to, ...filters } = search;
  const span = useSpan({ period, from, to });
  const [measure, setMeasure] = useState<MeasureName>('cost');
  const usage = useQuery({
    ...usageQuery({ ...span, ...filters, group_by: group }, scope.usagePath),
    refetchInterval: refreshMs,
  });
  const change = (next: SearchChange<UsageSearch>): void => onSearch(withChange(search, next));
  return (
    <>
      <PageHeader title={title} description={description}>
        <DownloadButton
          href={usageFile({ ...span, ...filters, group_by: group }, scope.usagePath)}
          label="Export the table"
        />
        <DownloadButton href={address(`${scope.jobsPath}.csv`, { ...span, ...filters })} label="Export the jobs" />
      </PageHeader>
      <Stack gap="md">
        <Card>
          <UsageFilters of="usage" scope={scope} filters={search} onChange={change}>
            <NativeSelect
              label="Group by"
              value={group}
              onChange={({ currentTarget }) => change({ group: currentTarget.value as Grouping })}
              data={scope.groupings.map((name) => ({ value: name, label: name[0]?.toUpperCase() + name.slice(1) }))}
            />
          </UsageFilters>
        </Card>
        {usage.error !== null && <ErrorPanel error={usage.error} onRetry={() => void usage.refetch()} />}
        {usage.isPending && <Skeleton height={320} />}
        {usage.data !== undefined && !isUsed(usage.data.total) && (
          <Card>
            <EmptyState title="Nothing was used here" icon={IconChartBarOff}>
              Choose a longer period or fewer filters.
              {!scope.isOfAll && (
                <span>
                  With no request yet, <TextLink to="/">the overview shows the first steps</TextLink>.
                </span>
              )}
            </EmptyState>
          </Card>
        )}
        {usage.data !== undefined && isUsed(usage.data.total) && (
          <UsageView usage={usage.data} {...{ scope, search, group, span, measure, setMeasure }} />
        )}
      </Stack>
    </>
  );
}

interface UsageViewProps {
  readonly usage: Usage;
  readonly scope: UsageScope;
  readonly search: UsageSearch;
  readonly group: Grouping;
  readonly span: { readonly from: number; readonly to: number };
  readonly measure: MeasureName;
  readonly setMeasure: (measure: MeasureName) => void;
}

function UsageView({ usage, scope, search, group, span, measure, setMeasure }: UsageViewProps) {
  return (
    <>
      <Group justify="flex-end">
        <SegmentedControl
          aria-label="What the chart shows"
          value={measure}
          onChange={(value) => setMeasure(value as MeasureName)}
          data={measureNames.map((value) => ({ value, label: measures[value].label }))}
          size="xs"
          // Onto a second line in a narrow window, where its end was cut off.
          styles={{ root: { flexWrap: 'wrap' } }}
        />
      </Group>
      <UsageChart usage={usage} group={group} span={span} measure={measure} />
      <CacheTiles total={usage.total} />
      <Card title={`By ${group}`}>
        <UsageTable usage={usage} scope={scope} group={group} search={search} span={span} />
      </Card>
      {usage.latency.whole !== null && (
        <Card title="Latency">
          <LatencyTable latency={usage.latency} />
        </Card>
      )}
    </>
  );
}

const maxBars = 10;

function UsageChart({ usage, group, span, measure }: Pick<UsageViewProps, 'usage' | 'group' | 'span' | 'measure'>) {
  const { label, series, kind, unit, of } = measures[measure];
  if (group === 'day' || group === 'hour') {
    return (
      <TimeChart title={label} points={usageSeries(usage.data, span, group)} series={series} kind={kind} unit={unit} />
    );
  }
  const bars = usage.data
    .map((row) => ({ name: row.label, value: of(row) }))
    .sort((a, b) => b.value - a.value)
    .slice(0, maxBars);
  return (
    <Card title={label}>
      <GroupChart label={`${label} by ${group}`} groups={bars} unit={unit} />
    </Card>
  );
}
