import { Button, NativeSelect, Stack } from '@mantine/core';
import { IconDownload } from '@tabler/icons-react';
import { useMemo } from 'react';
import type { Job } from '../../api/jobs.ts';
import { useList } from '../../api/lists.ts';
import { address } from '../../api/request.ts';
import { Card } from '../../components/card.tsx';
import { type Column, ListTable } from '../../components/data-table.tsx';
import { EmptyState } from '../../components/empty-state.tsx';
import { PageHeader } from '../../components/page-header.tsx';
import { TextLink } from '../../components/text-link.tsx';
import { time } from '../../format/time.ts';
import { UsageFilters } from './usage-filters.tsx';
import type { UsageScope } from './usage-scope.ts';
import { type JobsSearch, type SearchChange, withChange } from './usage-search.ts';
import { spanOf } from './usage-span.ts';

const statuses = ['', 'completed', 'failed', 'cancelled', 'unfinished'];

/** The single requests behind a line of the usage, with the same filters, and as a file. */
export function UsageJobs({
  columns,
  scope,
  search,
  onSearch,
}: {
  columns: readonly Column<Job>[];
  scope: UsageScope;
  search: JobsSearch;
  onSearch: (search: JobsSearch) => void;
}) {
  const { period, from, to, ...filters } = search;
  const span = useMemo(() => spanOf({ period, from, to }), [period, from, to]);
  const jobs = useList<Job>(scope.jobsPath, { ...span, ...filters });
  const change = (next: SearchChange<JobsSearch>): void => onSearch(withChange(search, next));
  return (
    <>
      <PageHeader
        title="Requests"
        description={
          <>
            {time(span.from)} to {time(span.to)}. <TextLink to={scope.usagePage}>Back to usage</TextLink>
          </>
        }
      >
        <Button
          component="a"
          href={address(`${scope.jobsPath}.csv`, { ...span, ...filters })}
          download
          variant="default"
          leftSection={<IconDownload size={16} aria-hidden />}
        >
          Export CSV
        </Button>
      </PageHeader>
      <Stack gap="md">
        <Card>
          <UsageFilters scope={scope} filters={search} onChange={change}>
            <NativeSelect
              label="Status"
              value={search.status ?? ''}
              onChange={({ currentTarget: { value } }) => change({ status: value === '' ? undefined : value })}
              data={statuses.map((value) => ({ value, label: value === '' ? 'All' : value }))}
            />
          </UsageFilters>
        </Card>
        <Card>
          <ListTable
            label="Requests"
            list={jobs}
            rowKey={(job) => job.id}
            columns={columns}
            empty={<EmptyState title="No requests match">Choose a longer period or fewer filters.</EmptyState>}
          />
        </Card>
      </Stack>
    </>
  );
}
