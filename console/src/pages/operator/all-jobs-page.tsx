import { Stack } from '@mantine/core';
import { getRouteApi } from '@tanstack/react-router';
import { useList } from '../../api/lists.ts';
import { PageHeader } from '../../components/page-header.tsx';
import { allJobColumns, allLiveJobColumns } from '../jobs/job-columns.tsx';
import { JobHistory } from '../jobs/job-history.tsx';
import { LiveJobs } from '../jobs/live-jobs.tsx';
import { operatorScope } from '../usage/usage-scope.ts';
import type { Account } from './operator-api.ts';
import { OperatorsOnly } from './operators-only.tsx';

/** The jobs of all accounts, in progress and ended. */
export function AllJobsPage() {
  return (
    <OperatorsOnly>
      <PageHeader title="All jobs" description="Of every account, under way or ended." />
      <AllJobs />
    </OperatorsOnly>
  );
}

const route = getRouteApi('/shell/operator/jobs');

function AllJobs() {
  const navigate = route.useNavigate();
  const search = route.useSearch();
  const { account, model, key, endpoint, capability } = search;
  const accounts = useList<Account>('/admin/v1/accounts', {}, { pageSize: 100 });
  return (
    <Stack gap="md">
      <LiveJobs
        scope={operatorScope}
        columns={allLiveJobColumns(accounts.rows)}
        filter={{ account, model, key, endpoint, capability }}
      />
      <JobHistory
        scope={operatorScope}
        columns={allJobColumns(accounts.rows)}
        search={search}
        onSearch={(next) => void navigate({ search: next, replace: true, resetScroll: false })}
      />
    </Stack>
  );
}
