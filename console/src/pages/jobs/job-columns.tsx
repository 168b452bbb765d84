import { Anchor, Text } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { type Job, jobDuration } from '../../api/jobs.ts';
import type { Column } from '../../components/data-table.tsx';
import { StatusBadge } from '../../components/status-badge.tsx';
import { money } from '../../format/money.ts';
import { count } from '../../format/number.ts';
import { duration, time } from '../../format/time.ts';

const made: Column<Job> = { title: 'Made', render: (job) => time(job.created_at) };
const status: Column<Job> = {
  title: 'Status',
  render: (job) => <StatusBadge status={job.status} />,
};
const endpoint: Column<Job> = { title: 'Endpoint', render: (job) => job.endpoint };
const key: Column<Job> = { title: 'Key', render: (job) => job.key?.name ?? '–' };

const model: Column<Job> = {
  title: 'Model',
  isMain: true,
  render: (job) => (
    <Anchor size="sm" renderRoot={(props) => <Link to="/jobs/$jobId" params={{ jobId: job.id }} {...props} />}>
      {job.model}
    </Anchor>
  ),
};

const operatorsModel: Column<Job> = {
  title: 'Model',
  isMain: true,
  render: (job) => (
    <Anchor size="sm" renderRoot={(props) => <Link to="/operator/jobs/$jobId" params={{ jobId: job.id }} {...props} />}>
      {job.model}
    </Anchor>
  ),
};

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

/** Columns of the jobs of all accounts. @param accounts those whose names are known; others are told by their ids */
export function allJobColumns(accounts: readonly { readonly id: string; readonly name: string }[]) {
  const names = new Map(accounts.map(({ id, name }) => [id, name]));
  const account: Column<Job> = { title: 'Account', render: (job) => names.get(job.account_id) ?? job.account_id };
  return [operatorsModel, status, account, endpoint, made, took, tokens, cost, problem] as const;
}

/** What live jobs have, before the columns of what can be done with them. */
export const liveJobColumns = [model, status, endpoint, key] as const;
