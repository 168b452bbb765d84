import { Button, Code, Group, Text } from '@mantine/core';
import { IconEye, IconX } from '@tabler/icons-react';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { gatewayNow } from '../../api/gateway-clock.ts';
import type { Job } from '../../api/jobs.ts';
import { type Query, request } from '../../api/request.ts';
import { Card } from '../../components/card.tsx';
import { ConfirmDialog } from '../../components/confirm-dialog.tsx';
import { type Column, DataTable, TableSkeleton } from '../../components/data-table.tsx';
import { ErrorPanel } from '../../components/error-panel.tsx';
import { duration } from '../../format/time.ts';
import { ownScope, type UsageScope } from '../usage/usage-scope.ts';
import { liveJobColumns } from './job-columns.tsx';
import { WatchDialog } from './watch-dialog.tsx';

/** Refetch interval; paused while the page is hidden. */
const everyMs = 2000;

interface LiveJobsProps {
  readonly scope?: UsageScope;
  readonly columns?: readonly Column<Job>[];
  /** Filter of the list, as its JSON route accepts it. */
  readonly filter?: Query;
}

/** Jobs in progress, which can be watched or cancelled. Operators cannot watch others' answers. */
export function LiveJobs({ scope = ownScope, columns = liveJobColumns, filter = {} }: LiveJobsProps) {
  const client = useQueryClient();
  const path = `${scope.jobsPath}/live`;
  const [watched, setWatched] = useState<Job>();
  const [cancelled, setCancelled] = useState<Job>();
  const jobs = useQuery({
    queryKey: [path, filter],
    queryFn: ({ signal }) => request<LiveList>('GET', path, { query: filter, signal }),
    refetchInterval: everyMs,
    staleTime: 0,
  });
  const cancel = async (): Promise<void> => {
    await request('DELETE', `${scope.jobsPath}/${cancelled?.id}`);
    await client.invalidateQueries({ predicate: ({ queryKey }) => String(queryKey[0]).startsWith(scope.jobsPath) });
  };
  const rows = jobs.data?.data ?? [];
  const isFiltered = Object.values(filter).some((value) => value !== undefined);
  return (
    <Card title="Live">
      {jobs.isPending && <TableSkeleton rows={2} />}
      {jobs.isError && <ErrorPanel error={jobs.error} onRetry={() => void jobs.refetch()} />}
      {jobs.isSuccess && rows.length === 0 && (
        <Text size="sm" c="dimmed">
          Nothing is running{isFiltered && ' that the filters leave'}. Requests that wait or are being answered appear
          here within two seconds.
        </Text>
      )}
      {rows.length > 0 && (
        <DataTable
          label="Jobs under way"
          columns={[...columns, since, actions(scope.isOfAll ? undefined : setWatched, setCancelled)]}
          rows={rows}
          rowKey={({ id }) => id}
        />
      )}
      {jobs.data?.has_more === true && (
        <Text size="sm" c="dimmed" mt="sm">
          These are the newest {rows.length}; there are more.
        </Text>
      )}
      {watched !== undefined && <WatchDialog job={watched} onClose={() => setWatched(undefined)} />}
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
  render: (job) => duration(Math.max(0, gatewayNow() - job.created_at)),
};

interface LiveList {
  readonly data: readonly Job[];
  readonly has_more: boolean;
}

function actions(watch: ((job: Job) => void) | undefined, cancel: (job: Job) => void): Column<Job> {
  return {
    title: 'Actions',
    align: 'right',
    render: (job) => (
      <Group gap="xs" justify="flex-end" wrap="nowrap">
        {watch !== undefined && (
          <Button
            size="xs"
            variant="default"
            leftSection={<IconEye size={16} aria-hidden />}
            aria-label={`Watch ${job.id}`}
            onClick={() => watch(job)}
          >
            Watch
          </Button>
        )}
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
