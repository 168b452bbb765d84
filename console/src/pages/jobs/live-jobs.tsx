import { Button, Code, Group, Text } from '@mantine/core';
import { IconBolt, IconEye, IconX } from '@tabler/icons-react';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { Job } from '../../api/jobs.ts';
import { request } from '../../api/request.ts';
import { Card } from '../../components/card.tsx';
import { ConfirmDialog } from '../../components/confirm-dialog.tsx';
import { type Column, DataTable, TableSkeleton } from '../../components/data-table.tsx';
import { EmptyState } from '../../components/empty-state.tsx';
import { ErrorPanel } from '../../components/error-panel.tsx';
import { duration } from '../../format/time.ts';
import { liveJobColumns } from './job-columns.tsx';
import { WatchDialog } from './watch-dialog.tsx';

/** How often they are asked for; not while the page is hidden. */
const everyMs = 2000;

/** What is under way now: watched, or cancelled. */
export function LiveJobs() {
  const client = useQueryClient();
  const [watched, setWatched] = useState<Job>();
  const [cancelled, setCancelled] = useState<Job>();
  const jobs = useQuery({
    queryKey: ['/jobs/live'],
    queryFn: ({ signal }) => request<{ data: readonly Job[] }>('GET', '/jobs/live', { signal }),
    refetchInterval: everyMs,
    staleTime: 0,
  });
  const cancel = async (): Promise<void> => {
    await request('DELETE', `/jobs/${cancelled?.id}`);
    await client.invalidateQueries({ predicate: ({ queryKey }) => String(queryKey[0]).startsWith('/jobs') });
  };
  const rows = jobs.data?.data ?? [];
  return (
    <Card title="Live">
      {jobs.isPending && <TableSkeleton rows={2} />}
      {jobs.isError && <ErrorPanel error={jobs.error} onRetry={() => void jobs.refetch()} />}
      {jobs.data !== undefined && rows.length === 0 && (
        <EmptyState title="Nothing is running" icon={IconBolt}>
          Requests that wait or are being answered appear here within two seconds.
        </EmptyState>
      )}
      {rows.length > 0 && (
        <DataTable
          label="Jobs under way"
          columns={[...liveJobColumns, since, actions(setWatched, setCancelled)]}
          rows={rows}
          rowKey={({ id }) => id}
        />
      )}
      <WatchDialog job={watched} onClose={() => setWatched(undefined)} />
      <ConfirmDialog
        opened={cancelled !== undefined}
        title="Cancel this job?"
        confirmLabel="Cancel the job"
        onConfirm={cancel}
        onClose={() => setCancelled(undefined)}
      >
        <Text size="sm">
          Whoever waits for <Code>{cancelled?.id}</Code> gets an error. What was answered until now is charged.
        </Text>
      </ConfirmDialog>
    </Card>
  );
}

const since: Column<Job> = {
  title: 'For',
  align: 'right',
  render: (job) => duration(Math.max(0, Date.now() - job.created_at)),
};

function actions(watch: (job: Job) => void, cancel: (job: Job) => void): Column<Job> {
  return {
    title: 'Actions',
    align: 'right',
    render: (job) => (
      <Group gap="xs" justify="flex-end" wrap="nowrap">
        <Button
          size="xs"
          variant="default"
          leftSection={<IconEye size={16} aria-hidden />}
          aria-label={`Watch ${job.id}`}
          onClick={() => watch(job)}
        >
          Watch
        </Button>
        <Button
          size="xs"
          variant="default"
          leftSection={<IconX size={16} aria-hidden />}
          aria-label={`Cancel ${job.id}`}
          onClick={() => cancel(job)}
        >
          Cancel
        </Button>
      </Group>
    ),
  };
}
