import { Stack } from '@mantine/core';
import { getRouteApi } from '@tanstack/react-router';
import { PageHeader } from '../../components/page-header.tsx';
import { TextLink } from '../../components/text-link.tsx';
import { ownScope } from '../usage/usage-scope.ts';
import { jobColumns } from './job-columns.tsx';
import { JobHistory } from './job-history.tsx';
import { LiveJobs } from './live-jobs.tsx';

const route = getRouteApi('/shell/jobs');

/** The account's jobs: live ones, and the history. */
export function JobsPage() {
  const navigate = route.useNavigate();
  return (
    <>
      <PageHeader
        title="Jobs"
        description={
          <>
            Every request of your account, under way or ended. Sums and charts are under{' '}
            <TextLink to="/usage">usage</TextLink>.
          </>
        }
      />
      <Stack gap="md">
        <LiveJobs />
        <JobHistory
          scope={ownScope}
          columns={jobColumns}
          search={route.useSearch()}
          onSearch={(search) => void navigate({ search, replace: true, resetScroll: false })}
        />
      </Stack>
    </>
  );
}
