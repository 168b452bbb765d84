import { Button, Code, Group, SimpleGrid, Skeleton, Stack } from '@mantine/core';
import { useInterval } from '@mantine/hooks';
import { IconEye } from '@tabler/icons-react';
import { useMutation, useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useState } from 'react';
import { gatewayNow } from '../../api/gateway-clock.ts';
import { hasEnded, isSettling, type Job, jobDuration, jobQuery } from '../../api/jobs.ts';
import { queryClient } from '../../api/query-client.ts';
import { request } from '../../api/request.ts';
import { AccountLink } from '../../components/account-link.tsx';
import { Card } from '../../components/card.tsx';
import { CodeBlock } from '../../components/code-block.tsx';
import { ConfirmDialog } from '../../components/confirm-dialog.tsx';
import { ErrorPanel } from '../../components/error-panel.tsx';
import { Facts } from '../../components/facts.tsx';
import { PageHeader } from '../../components/page-header.tsx';
import { StatusBadge } from '../../components/status-badge.tsx';
import { TextLink } from '../../components/text-link.tsx';
import { money } from '../../format/money.ts';
import { count } from '../../format/number.ts';
import { duration } from '../../format/time.ts';
import { WatchDialog } from '../jobs/watch-dialog.tsx';
import { JobTimeline } from './job-timeline.tsx';
import { ownScope, type UsageScope } from './usage-scope.ts';

const route = getRouteApi('/shell/jobs/$jobId');

/** One request of the account. */
export function JobPage() {
  return <JobById id={route.useParams().jobId} scope={ownScope} />;
}

/** One request: its details, timeline, usage and cost. Follows a job in progress. */
export function JobById({ id, scope }: { id: string; scope: UsageScope }) {
  const job = useQuery(jobQuery(id, scope.jobsPath));
  // Stays open if the job ends meanwhile.
  const [watched, setWatched] = useState<Job>();
  return (
    <>
      <PageHeader title="Job" description={<Code style={{ overflowWrap: 'anywhere' }}>{id}</Code>}>
        {job.data !== undefined && !hasEnded(job.data) && (
          <>
            {!scope.isOfAll && (
              <Button
                variant="default"
                leftSection={<IconEye size={18} aria-hidden />}
                onClick={() => setWatched(job.data)}
              >
                Watch
              </Button>
            )}
            <CancelButton id={id} path={scope.jobsPath} />
          </>
        )}
      </PageHeader>
      {job.error !== null && <ErrorPanel error={job.error} onRetry={() => void job.refetch()} />}
      {job.isPending && <Skeleton height={360} />}
      {job.data !== undefined && <JobView job={job.data} scope={scope} />}
      {watched !== undefined && <WatchDialog job={watched} onClose={() => setWatched(undefined)} />}
    </>
  );
}

function CancelButton({ id, path }: { id: string; path: UsageScope['jobsPath'] }) {
  const [isAsking, setAsking] = useState(false);
  const cancel = useMutation({
    mutationFn: () => request('DELETE', `${path}/${encodeURIComponent(id)}`),
    onSuccess: () => queryClient.invalidateQueries({ queryKey: [path] }),
  });
  return (
    <>
      <Button variant="default" onClick={() => setAsking(true)}>
        Cancel the job
      </Button>
      <ConfirmDialog
        opened={isAsking}
        title="Cancel this job?"
        confirmLabel="Cancel the job"
        onConfirm={() => cancel.mutateAsync()}
        onClose={() => setAsking(false)}
      >
        What the vendor has done up to now is charged.
      </ConfirmDialog>
    </>
  );
}

function JobView({ job, scope }: { job: Job; scope: UsageScope }) {
  const keyName = job.key.name ?? job.key.id;
  return (
    <Stack gap="md">
      <SimpleGrid cols={{ base: 1, md: 2 }} spacing="md">
        <Card title="Timeline">
          <JobTimeline job={job} />
        </Card>
        <Card title="Details" actions={<StatusBadge status={job.status} />}>
          <Facts
            lines={{
              Cost: <Cost job={job} />,
              "Vendor's own cost": job.vendor_cost === null ? null : money(job.vendor_cost),
              [hasEnded(job) ? 'Took' : 'Took so far']: <Duration job={job} />,
              Model: job.model,
              'Answered by': job.served_model,
              Vendor: job.vendor,
              'Service tier': job.service_tier,
              Attempts: count(job.attempts),
              Endpoint: job.endpoint,
              Streamed: job.stream ? 'yes' : 'no',
              Account: scope.isOfAll ? <AccountLink id={job.account_id} /> : null,
              Key: scope.isOfAll ? keyName : <TextLink to="/keys">{keyName}</TextLink>,
              'Input tokens': job.input_tokens === null ? null : count(job.input_tokens),
              'Output tokens': job.output_tokens === null ? null : count(job.output_tokens),
              Error: job.error_code === null ? null : <Code>{job.error_code}</Code>,
              Reason: job.error_message,
              'Field at fault': job.error_param === null ? null : <Code>{job.error_param}</Code>,
              "Vendor's status": job.vendor_status === null ? null : String(job.vendor_status),
            }}
          />
          <Tags metadata={job.metadata} page={scope.usagePage} />
        </Card>
      </SimpleGrid>
      {job.usage !== null && job.usage !== undefined && (
        <Card title="Usage as measured">
          <CodeBlock code={JSON.stringify(job.usage, null, 2)} label="Usage as JSON" />
        </Card>
      )}
    </Stack>
  );
}

/** The cost of a job. One that failed, or whose model has no price, may have none. */
function Cost({ job }: { job: Job }) {
  const [now, setNow] = useState(gatewayNow);
  const isOpen = isSettling(job, now);
  useInterval(() => setNow(gatewayNow()), 1000, { autoInvoke: isOpen });
  return isOpen ? 'not settled yet' : money(job.cost);
}

/** Duration of a job, so far if it is in progress. */
function Duration({ job }: { job: Job }) {
  const isRunning = !hasEnded(job);
  const [now, setNow] = useState(gatewayNow);
  useInterval(() => setNow(gatewayNow()), 1000, { autoInvoke: isRunning });
  return duration(isRunning ? Math.max(0, now - job.created_at) : jobDuration(job));
}

function Tags({ metadata, page }: { metadata: Job['metadata']; page: UsageScope['usagePage'] }) {
  const tags = Object.entries(metadata ?? {});
  if (tags.length === 0) return null;
  return (
    <Group gap={6} mt="md" aria-label="Tags" role="group">
      {tags.map(([name, value]) => (
        <TextLink
          key={name}
          to={page}
          search={{ tag: `${name}:${value}` }}
          size="sm"
          style={{ overflowWrap: 'anywhere' }}
        >
          {name}: {value}
        </TextLink>
      ))}
    </Group>
  );
}
