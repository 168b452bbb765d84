import { getRouteApi } from '@tanstack/react-router';
import { useList } from '../../api/lists.ts';
import { allJobColumns } from '../jobs/job-columns.tsx';
import { UsageJobs } from '../usage/usage-jobs.tsx';
import { operatorScope } from '../usage/usage-scope.ts';
import type { JobsSearch } from '../usage/usage-search.ts';
import type { Account } from './operator-api.ts';
import { OperatorsOnly } from './operators-only.tsx';

const route = getRouteApi('/shell/operator/usage/jobs');

/** The single requests behind a line of the usage of all accounts. */
export function AllUsageJobsPage() {
  const navigate = route.useNavigate();
  const search = route.useSearch();
  return (
    <OperatorsOnly>
      <AllUsageJobs
        search={search}
        onSearch={(next) => void navigate({ search: next, replace: true, resetScroll: false })}
      />
    </OperatorsOnly>
  );
}

function AllUsageJobs(props: { search: JobsSearch; onSearch: (search: JobsSearch) => void }) {
  const accounts = useList<Account>('/admin/v1/accounts', {}, { pageSize: 100 });
  return <UsageJobs columns={allJobColumns(accounts.rows)} scope={operatorScope} {...props} />;
}
