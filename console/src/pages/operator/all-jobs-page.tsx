import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { useList } from '../../api/lists.ts';
import { PageHeader } from '../../components/page-header.tsx';
import { allJobColumns } from '../jobs/job-columns.tsx';
import { JobHistory } from '../jobs/job-history.tsx';
import type { Account } from './operator-api.ts';
import { OperatorsOnly } from './operators-only.tsx';

/** The jobs of all accounts. */
export function AllJobsPage() {
  return (
    <OperatorsOnly>
      <PageHeader title="All jobs" description="Of every account, newest first." />
      <AllJobs />
    </OperatorsOnly>
  );
}

const route = getRouteApi('/shell/operator/jobs');

function AllJobs() {
  const search = route.useSearch();
  const navigate = useNavigate();
  const accounts = useList<Account>('/admin/v1/accounts', {}, { pageSize: 100 });
  return (
    <JobHistory
      path="/admin/v1/jobs"
      columns={allJobColumns(accounts.rows)}
      search={search}
      onChange={(next) => void navigate({ to: '/operator/jobs', search: next, replace: true })}
      accounts={accounts.rows}
    />
  );
}
