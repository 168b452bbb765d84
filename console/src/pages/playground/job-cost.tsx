import { Group, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { type Job, jobQuery } from '../../api/jobs.ts';
import { TextLink } from '../../components/text-link.tsx';
import { money } from '../../format/money.ts';
import { count } from '../../format/number.ts';
import { duration } from '../../format/time.ts';

/** How often a job is read until it is settled, and how long after its end that is waited for, in ms. */
const everyMs = 1000;
const settlementMs = 15_000;

/** What it cost may be known a moment after its end. */
function isSettled({ cost, ended_at: ended }: Job): boolean {
  return ended !== null && (cost !== null || Date.now() - ended > settlementMs);
}

interface JobCostProps {
  /** The id that the answer names: `job_…`, or `req_…` of what was refused before it became a job. */
  readonly requestId: string | undefined;
  /** Whether it tells how long the job took: not beside times that are measured here. */
  readonly hasTime?: boolean;
}

/** What a job used and cost, read once its answer is here, and the way to its page; nothing for what became no job. */
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
