import { Stack } from '@mantine/core';
import { getRouteApi, useNavigate } from '@tanstack/react-router';
import type { ApiKey } from '../../api/keys.ts';
import { useList } from '../../api/lists.ts';
import { PageHeader } from '../../components/page-header.tsx';
import { jobColumns } from './job-columns.tsx';
import { JobHistory } from './job-history.tsx';
import { LiveJobs } from './live-jobs.tsx';

const route = getRouteApi('/shell/jobs');

/** What the account asks for: under way, and all of it. */
export function JobsPage() {
  const search = route.useSearch();
  const navigate = useNavigate();
  const keys = useList<ApiKey>('/keys', {}, { pageSize: 100 });
  return (
    <>
      <PageHeader title="Jobs" description="Every request of your account, under way or ended." />
      <Stack gap="md">
        <LiveJobs />
        <JobHistory
          path="/jobs"
          columns={jobColumns}
          search={search}
          onChange={(next) => void navigate({ to: '/jobs', search: next, replace: true })}
          keys={keys.rows}
        />
      </Stack>
    </>
  );
}
