import { getRouteApi } from '@tanstack/react-router';
import { jobColumns } from '../jobs/job-columns.tsx';
import { UsageJobs } from './usage-jobs.tsx';
import { ownScope } from './usage-scope.ts';

const route = getRouteApi('/shell/usage/jobs');

/** The single requests behind a line of the usage page. */
export function UsageJobsPage() {
  const navigate = route.useNavigate();
  return (
    <UsageJobs
      columns={jobColumns}
      scope={ownScope}
      search={route.useSearch()}
      onSearch={(search) => void navigate({ search, replace: true, resetScroll: false })}
    />
  );
}
