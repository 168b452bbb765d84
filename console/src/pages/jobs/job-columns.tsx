import { Text } from '@mantine/core';
import { type Job, jobDuration } from '../../api/jobs.ts';
import type { Column } from '../../components/data-table.tsx';
import { StatusBadge } from '../../components/status-badge.tsx';
import { TextLink } from '../../components/text-link.tsx';
import { money } from '../../format/money.ts';
import { count } from '../../format/number.ts';
import { duration, time } from '../../format/time.ts';
import { operatorScope, ownScope, type UsageScope } from '../usage/usage-scope.ts';

const made: Column<Job> = { title: 'Made', render: (job) => time(job.created_at) };
const status: Column<Job> = {
  title: 'Status',
  render: (job) => <StatusBadge status={job.status} />,
};
const endpoint: Column<Job> = { title: 'Endpoint', render: (job) => job.endpoint };
const key: Column<Job> = { title: 'Key', render: (job) => job.key?.name ?? '–' };

/** Links to the job's page. */
const modelIn = ({ jobPage }: UsageScope): Column<Job> => ({
  title: 'Model',
  isMain: true,
  render: (job) => (
    <TextLink to={jobPage} params={{ jobId: job.id }} size="sm">
      {job.model}
    </TextLink>
  ),
});
const model = modelIn(ownScope);

const took: Column<Job> = {
  title: 'Took',
  align: 'right',
  render: (job) => duration(jobDuration(job)),
};
const tokens: Column<Job> = {
  title: 'Tokens',
  align: 'right',
  render: ({ input_tokens: input, output_tokens: output }) =>
    input === null && output === null ? '–' : `${count(input ?? 0)} / ${count(output ?? 0)}`,
};
const cost: Column<Job> = { title: 'Cost', align: 'right', render: (job) => money(job.cost) };

const problem: Column<Job> = {
  title: 'Error',
  render: ({ error_code: code }) =>
    code === null ? (
      '–'
    ) : (
      <Text size="xs" c="dimmed" component="span">
        {code}
      </Text>
    ),
};

/** Columns of an account's own jobs. */
export const jobColumns = [model, status, endpoint, key, made, took, tokens, cost, problem] as const;

/**
 * Columns of the jobs of all accounts.
 * @param accounts accounts with known names; others are shown by id
 */
export function allJobColumns(accounts: readonly NamedAccount[]) {
  return [modelIn(operatorScope), status, accountOf(accounts), endpoint, made, took, tokens, cost, problem] as const;
}

/** Columns of live jobs, before those with actions. */
export const liveJobColumns = [model, status, endpoint, key] as const;

/** The same for all accounts. */
export function allLiveJobColumns(accounts: readonly NamedAccount[]) {
  return [modelIn(operatorScope), status, accountOf(accounts), endpoint, key] as const;
}

interface NamedAccount {
  readonly id: string;
  readonly name: string;
}

function accountOf(accounts: readonly NamedAccount[]): Column<Job> {
  const names = new Map(accounts.map(({ id, name }) => [id, name]));
  return { title: 'Account', render: (job) => names.get(job.account_id) ?? job.account_id };
}
