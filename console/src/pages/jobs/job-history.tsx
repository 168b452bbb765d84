import { Anchor, Button } from '@mantine/core';
import { IconDownload, IconListSearch } from '@tabler/icons-react';
import { Link } from '@tanstack/react-router';
import type { Job } from '../../api/jobs.ts';
import { useList } from '../../api/lists.ts';
import { address } from '../../api/request.ts';
import { Card } from '../../components/card.tsx';
import { type Column, ListTable } from '../../components/data-table.tsx';
import { EmptyState } from '../../components/empty-state.tsx';
import { JobFilters } from './job-filters.tsx';
import { type JobListSearch, jobListQuery } from './job-list-search.ts';

interface JobHistoryProps {
  /** `/jobs`, or `/admin/v1/jobs` for all accounts. */
  readonly path: string;
  readonly columns: readonly Column<Job>[];
  readonly search: JobListSearch;
  readonly onChange: (search: JobListSearch) => void;
  readonly keys?: readonly { readonly id: string; readonly name: string }[];
  readonly accounts?: readonly { readonly id: string; readonly name: string }[];
}

/** How often the list is read again: a job is in it some moments after its end. */
const everyMs = 5000;

/** Jobs of the past and the present, newest first, with filters, and as a file. */
export function JobHistory({ path, columns, search, onChange, keys, accounts }: JobHistoryProps) {
  const query = jobListQuery(search);
  const list = useList<Job>(path, query, { refetchInterval: everyMs });
  const isFiltered = Object.keys(search).length > 0;
  return (
    <Card
      title="All jobs"
      actions={
        <Button
          component="a"
          href={address(`${path}.csv`, query)}
          download
          variant="default"
          size="xs"
          leftSection={<IconDownload size={16} aria-hidden />}
        >
          Export CSV
        </Button>
      }
    >
      <JobFilters
        search={search}
        onChange={onChange}
        {...(keys !== undefined && { keys })}
        {...(accounts !== undefined && { accounts })}
      />
      <ListTable
        list={list}
        label="Jobs"
        columns={columns}
        rowKey={({ id }) => id}
        empty={
          <EmptyState title={isFiltered ? 'No job is like that' : 'No jobs yet'} icon={IconListSearch}>
            {isFiltered ? (
              'Take a filter away, or choose a longer span.'
            ) : (
              <span>
                Every request becomes a job. Make one in the{' '}
                <Anchor renderRoot={(props) => <Link to="/playground" {...props} />}>playground</Anchor>, or with one of
                your <Anchor renderRoot={(props) => <Link to="/keys" {...props} />}>keys</Anchor>.
              </span>
            )}
          </EmptyState>
        }
      />
    </Card>
  );
}
