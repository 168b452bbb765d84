import { Code, Skeleton } from '@mantine/core';
import { IconSearchOff } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Navigate } from '@tanstack/react-router';
import { RequestError } from '../../api/request.ts';
import { type FoundRequest, requestQuery } from '../../api/requests.ts';
import { useSession } from '../../api/session.ts';
import { AccountLink } from '../../components/account-link.tsx';
import { Card } from '../../components/card.tsx';
import { EmptyState } from '../../components/empty-state.tsx';
import { ErrorPanel } from '../../components/error-panel.tsx';
import { Facts } from '../../components/facts.tsx';
import { PageHeader } from '../../components/page-header.tsx';
import { StatusBadge } from '../../components/status-badge.tsx';
import { TextLink } from '../../components/text-link.tsx';
import { exactTime } from '../../format/time.ts';

const route = getRouteApi('/shell/requests/$requestId');

/** A request by any of its ids: links to its job, or explains why it was refused. Operators find those of all accounts. */
export function RequestPage() {
  const { requestId: id } = route.useParams();
  const { user, account } = useSession();
  const isOperator = user.role === 'operator';
  const found = useQuery(requestQuery(id, isOperator));
  const jobId = found.data?.job_id ?? null;
  if (jobId !== null) {
    const isOwn = found.data?.account_id === account.id;
    return <Navigate to={isOwn ? '/jobs/$jobId' : '/operator/jobs/$jobId'} params={{ jobId }} replace />;
  }
  const isMissing = found.error instanceof RequestError && found.error.status === 404;
  return (
    <>
      <PageHeader title="Request" description={<Code style={{ overflowWrap: 'anywhere' }}>{id}</Code>} />
      {found.isPending && <Skeleton height={240} />}
      {found.error !== null && !isMissing && <ErrorPanel error={found.error} onRetry={() => void found.refetch()} />}
      {isMissing && (
        <Card>
          <EmptyState title="Nothing is kept under this id" icon={IconSearchOff}>
            <span>
              {isOperator ? 'No job has it' : 'No job of your account has it'}, and no request with it was refused in
              the last 7 days. Requests that succeeded without a job, such as a list of models, are not kept; of many
              refusals in one second, only the first are.
            </span>
            <TextLink to={isOperator ? '/operator/jobs' : '/jobs'}>See the jobs</TextLink>
          </EmptyState>
        </Card>
      )}
      {found.data !== undefined && <Refused request={found.data} isOfAll={isOperator} />}
    </>
  );
}

function Refused({ request: { refusal, account_id: account }, isOfAll }: { request: FoundRequest; isOfAll: boolean }) {
  if (refusal === null) return null;
  const { created_at: at, method, path, status, error, key } = refusal;
  const keyName = key === null ? null : (key.name ?? key.id);
  return (
    <Card title="It was refused" actions={<StatusBadge status={String(status)} color="red" />}>
      <Facts
        lines={{
          Reason: error.message,
          'Field at fault': error.param === null ? null : <Code>{error.param}</Code>,
          Error: <Code>{error.code}</Code>,
          'Error type': <Code>{error.type}</Code>,
          Request: (
            <Code>
              {method} {path}
            </Code>
          ),
          Time: exactTime(at),
          Key: keyName === null || isOfAll ? keyName : <TextLink to="/keys">{keyName}</TextLink>,
          Account: isOfAll && account !== null ? <AccountLink id={account} /> : null,
        }}
      />
    </Card>
  );
}
