import { Stack } from '@mantine/core';
import { IconListSearch } from '@tabler/icons-react';
import { useMemo } from 'react';
import type { Job } from '../../api/jobs.ts';
import { useList } from '../../api/lists.ts';
import { address } from '../../api/request.ts';
import { Card } from '../../components/card.tsx';
import { type Column, ListTable } from '../../components/data-table.tsx';
import { DownloadButton } from '../../components/download-button.tsx';
import { EmptyState } from '../../components/empty-state.tsx';
import { TextLink } from '../../components/text-link.tsx';
import { UsageFilters } from '../usage/usage-filters.tsx';
import type { UsageScope } from '../usage/usage-scope.ts';
import { type JobsSearch, withChange } from '../usage/usage-search.ts';
import { jobSpanOf } from '../usage/usage-span.ts';

interface JobHistoryProps {
  readonly scope: UsageScope;
  readonly columns: readonly Column<Job>[];
  readonly search: JobsSearch;
  readonly onSearch: (search: JobsSearch) => void;
}

/** Refetch interval of the list: a job appears some moments after its end. */
const everyMs = 5000;

/** Past and current jobs, newest first, with filters, and as a file. */
export function JobHistory({ scope, columns, search, onSearch }: JobHistoryProps) {
  const { period, from, to, ...filters } = search;
  const span = useMemo(() => jobSpanOf({ period, from, to }), [period, from, to]);
  const query = { ...span, ...filters };
  const list = useList<Job>(scope.jobsPath, query, { refetchInterval: everyMs });
  const isFiltered = Object.keys(search).length > 0;
  return (
    <Card
      title="History"
      actions={<DownloadButton href={address(`${scope.jobsPath}.csv`, query)} label="Export CSV" />}
    >
      <Stack gap="md">
        <UsageFilters
          of="jobs"
          scope={scope}
          filters={search}
          onChange={(change) => onSearch(withChange(search, change))}
        />
        <ListTable
          list={list}
          label="Jobs"
          columns={columns}
          rowKey={({ id }) => id}
          empty={
            <EmptyState title={isFiltered ? 'No matching jobs' : 'No jobs yet'} icon={IconListSearch}>
              {isFiltered ? (
                'Take a filter away, or choose a longer period.'
              ) : (
                <span>
                  Every request becomes a job. Make one in the <TextLink to="/playground">playground</TextLink>, or with
                  one of your <TextLink to="/keys">keys</TextLink>.
                </span>
              )}
            </EmptyState>
          }
        />
      </Stack>
    </Card>
  );
}
