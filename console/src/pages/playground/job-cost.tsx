import { Group, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { gatewayNow } from '../../api/gateway-clock.ts';
import { type Job, jobQuery } from '../../api/jobs.ts';
import { TextLink } from '../../components/text-link.tsx';
import { money } from '../../format/money.ts';
import { count } from '../../format/number.ts';
import { duration } from '../../format/time.ts';

/** Refetch interval of a job until it is settled, and maximum wait for that after its end, in ms. */
const everyMs = 1000;
const settlementMs = 15_000;

/** The cost may become known a moment after the job's end. */
function isSettled({ cost, ended_at: ended }: Job): boolean {
  return ended !== null && (cost !== null || gatewayNow() - ended > settlementMs);
}

interface JobCostProps {
  /** The id in the response: `job_…`, or `req_…` for a request refused before it became a job. */
  readonly requestId: string | undefined;
  /** Whether to show the job's duration: not beside times measured here. */
  readonly hasTime?: boolean;
}

/** A job's usage and cost, loaded once its answer has arrived, with a link to its page; nothing for a request without a job. */
export function JobCost({ requestId, hasTime = true }: JobCostProps) {
  return requestId?.startsWith('job_') === true ? <CostOf jobId={requestId} hasTime={hasTime} /> : null;
}

function CostOf({ jobId, hasTime }: { jobId: string; hasTime: boolean }) {
  const job = useQuery({
    ...jobQuery(jobId),
    retry: 3,
    staleTime: 0,
    refetchInterval: ({ state }) => (state.data !== undefined && !isSettled(state.data) ? everyMs : false),
  });
  if (job.isError && job.data === undefined) return null;
  const facts: string[] = [];
  if (job.data !== undefined) {
    const { input_tokens: input, output_tokens: output, cost, created_at: created, ended_at: ended } = job.data;
    if (input !== null || output !== null) facts.push(`${count(input ?? 0)} in, ${count(output ?? 0)} out`);
    if (isSettled(job.data)) facts.push(cost === null ? 'no charge' : money(cost));
    if (hasTime && ended !== null) facts.push(duration(ended - created));
  }
  return (
    <Group gap="xs" aria-live="polite">
      <Text size="sm" c="dimmed" className="numbers" data-testid="job-cost">
        {job.isPending ? 'Reading its cost …' : facts.join(' · ')}
      </Text>
      {job.data !== undefined && (
        <TextLink to="/jobs/$jobId" params={{ jobId }} size="sm">
          See the job
        </TextLink>
      )}
    </Group>
  );
}
