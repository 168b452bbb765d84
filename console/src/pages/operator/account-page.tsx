import { Anchor, SimpleGrid, Stack } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { request } from '../../api/request.ts';
import { TableSkeleton } from '../../components/data-table.tsx';
import { ErrorPanel } from '../../components/error-panel.tsx';
import { PageHeader } from '../../components/page-header.tsx';
import { AccountCredit } from './account-credit.tsx';
import { AccountForm } from './account-form.tsx';
import { AccountKeys } from './account-keys.tsx';
import { AccountUsage } from './account-usage.tsx';
import { AccountUsers } from './account-users.tsx';
import type { Account } from './operator-api.ts';
import { OperatorsOnly } from './operators-only.tsx';

const route = getRouteApi('/shell/operator/accounts/$accountId');

/** One account: its settings, credit, usage, users and keys. */
export function AccountPage() {
  const { accountId } = route.useParams();
  return (
    <OperatorsOnly>
      <AccountView id={accountId} />
    </OperatorsOnly>
  );
}

function AccountView({ id }: { id: string }) {
  const path = `/admin/v1/accounts/${encodeURIComponent(id)}`;
  const account = useQuery({ queryKey: [path], queryFn: ({ signal }) => request<Account>('GET', path, { signal }) });
  if (account.isPending) return <TableSkeleton />;
  if (account.isError) return <ErrorPanel error={account.error} onRetry={() => void account.refetch()} />;
  return (
    <>
      <PageHeader title={account.data.name} description={id}>
        <Anchor size="sm" renderRoot={(props) => <Link to="/operator/jobs" search={{ account: id }} {...props} />}>
          Its jobs
        </Anchor>
        <Anchor size="sm" renderRoot={(props) => <Link to="/operator/accounts" {...props} />}>
          All accounts
        </Anchor>
      </PageHeader>
      <Stack gap="md">
        <SimpleGrid cols={{ base: 1, md: 2 }} spacing="md">
          <AccountForm key={id} account={account.data} />
          <AccountCredit account={account.data} />
        </SimpleGrid>
        <AccountUsage key={`usage ${id}`} account={account.data} />
        <AccountUsers key={`users ${id}`} account={account.data} />
        <AccountKeys account={account.data} />
      </Stack>
    </>
  );
}
