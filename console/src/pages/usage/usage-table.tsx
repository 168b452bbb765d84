import { Stack, Text } from '@mantine/core';
import { useState } from 'react';
import type { Usage, UsageRow } from '../../api/usage.ts';
import { type Column, DataTable } from '../../components/data-table.tsx';
import { ShowMore } from '../../components/show-more.tsx';
import { TextLink } from '../../components/text-link.tsx';
import { money } from '../../format/money.ts';
import { count, percent } from '../../format/number.ts';
import { duration, fullDayOf, time } from '../../format/time.ts';
import type { UsageScope } from './usage-scope.ts';
import { type Grouping, type JobsSearch, type UsageSearch, usualPeriod } from './usage-search.ts';

const pageSize = 50;
/** Never an id or a name of a model. */
const totalGroup = '\n';
const hourMs = 3_600_000;

interface Span {
  readonly from: number;
  readonly to: number;
}

/** The groups as a table; each name links to the group's jobs. */
export function UsageTable({
  usage,
  scope,
  group,
  search,
  span,
}: {
  usage: Usage;
  scope: UsageScope;
  group: Grouping;
  search: UsageSearch;
  span: Span;
}) {
  const [shown, setShown] = useState(pageSize);
  const isTime = group === 'day' || group === 'hour';
  const rows = [...usage.data].sort((a, b) =>
    isTime ? Number(b.group) - Number(a.group) : b.cost - a.cost || b.requests - a.requests,
  );
  const name = (row: UsageRow): string => {
    if (!isTime || row.group === totalGroup) return row.label;
    return group === 'day' ? fullDayOf(Number(row.group) + 6 * hourMs) : time(Number(row.group));
  };
  const columns: readonly Column<UsageRow>[] = [
    {
      title: group[0]?.toUpperCase() + group.slice(1),
      isMain: true,
      render: (row) =>
        // A request that no vendor has seen has no name to filter by.
        row.group === totalGroup || row.group === '' ? (
          name(row)
        ) : (
          <TextLink to={scope.jobsPage} search={jobsOf(row, group, search, span)} size="sm">
            {name(row)}
          </TextLink>
        ),
    },
    { title: 'Requests', align: 'right', render: (row) => count(row.requests) },
    {
      title: 'Failed',
      align: 'right',
      render: (row) => (row.failed === 0 ? '0' : `${count(row.failed)} (${percent(row.failed, row.requests)})`),
    },
    { title: 'Input tokens', align: 'right', render: (row) => count(row.input_tokens) },
    { title: 'Output tokens', align: 'right', render: (row) => count(row.output_tokens) },
    { title: 'Average time', align: 'right', render: (row) => duration(row.average_ms) },
    { title: 'First token', align: 'right', render: (row) => duration(row.average_first_ms) },
    { title: 'Spend', align: 'right', render: (row) => money(row.cost) },
  ];
  const total: UsageRow = { ...usage.total, group: totalGroup, label: 'Total' };
  return (
    <Stack gap="sm">
      <DataTable
        label={`Usage by ${group}`}
        rows={rows.slice(0, shown)}
        total={total}
        rowKey={(row) => String(row.group)}
        columns={columns}
      />
      {rows.length > shown && <ShowMore onClick={() => setShown(shown + pageSize)} />}
      {usage.has_more && (
        <Text size="sm" c="dimmed">
          These are the {count(rows.length)} that cost most; the total and the exported table have all.
        </Text>
      )}
    </Stack>
  );
}

/** The filters of a group's jobs: for the first and last day, limited to the span. */
function jobsOf(row: UsageRow, group: Grouping, { group: _group, ...filters }: UsageSearch, span: Span): JobsSearch {
  if (group === 'day' || group === 'hour') {
    const { period: _period, ...others } = filters;
    const from = Number(row.group);
    const to = from + (group === 'hour' ? 1 : 24) * hourMs;
    return { ...others, from: Math.max(from, span.from), to: Math.min(to, span.to) };
  }
  // A list of jobs covers any time unless a period is chosen.
  const { period = usualPeriod, ...others } = filters;
  const hasOwnSpan = filters.from !== undefined || filters.to !== undefined;
  return { ...others, ...(hasOwnSpan ? {} : { period }), [group]: String(row.group) };
}
