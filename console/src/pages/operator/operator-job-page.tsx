import { getRouteApi } from '@tanstack/react-router';
import { JobById } from '../usage/job-page.tsx';
import { operatorScope } from '../usage/usage-scope.ts';
import { OperatorsOnly } from './operators-only.tsx';

const route = getRouteApi('/shell/operator/jobs/$jobId');

/** One request of any account. */
export function OperatorJobPage() {
  const { jobId } = route.useParams();
  return (
    <OperatorsOnly>
      <JobById id={jobId} scope={operatorScope} />
    </OperatorsOnly>
  );
}
