import { Anchor, Button, Group, Stack, TextInput } from '@mantine/core';
import { IconBuildingBank, IconPlus } from '@tabler/icons-react';
import { useMutation } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { type FormEvent, useState } from 'react';
import { useListSearch } from '../../api/list-search.ts';
import { useList } from '../../api/lists.ts';
import { Card } from '../../components/card.tsx';
import { type Column, ListTable } from '../../components/data-table.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { EmptyState } from '../../components/empty-state.tsx';
import { FormError } from '../../components/error-panel.tsx';
import { PageHeader } from '../../components/page-header.tsx';
import { SearchInput } from '../../components/search-input.tsx';
import { StatusBadge } from '../../components/status-badge.tsx';
import { money } from '../../format/money.ts';
import { time } from '../../format/time.ts';
import { type Account, createAccount } from './operator-api.ts';
import { OperatorsOnly } from './operators-only.tsx';

/** All accounts, with a form for a new one. */
export function AccountsPage() {
  const [isOpen, setIsOpen] = useState(false);
  return (
    <OperatorsOnly>
      <PageHeader title="Accounts" description="Who owns keys, limits and usage.">
        <Button leftSection={<IconPlus size={18} aria-hidden />} onClick={() => setIsOpen(true)}>
          New account
        </Button>
      </PageHeader>
      <Card>
        <AccountTable />
      </Card>
      {isOpen && <NewAccountDialog onClose={() => setIsOpen(false)} />}
    </OperatorsOnly>
  );
}

const columns: readonly Column<Account>[] = [
  {
    title: 'Account',
    isMain: true,
    render: ({ id, name }) => (
      <Anchor
        size="sm"
        renderRoot={(props) => <Link to="/operator/accounts/$accountId" params={{ accountId: id }} {...props} />}
      >
        {name}
      </Anchor>
    ),
  },
  { title: 'Status', render: ({ suspended }) => <StatusBadge status={suspended ? 'suspended' : 'active'} /> },
  {
    title: 'Balance',
    align: 'right',
    render: ({ balance, is_unlimited: isUnlimited }) => (isUnlimited ? 'unlimited' : money(balance)),
  },
  { title: 'Made', align: 'right', render: ({ created_at: at }) => time(at) },
];

function AccountTable() {
  const { text, search, setText } = useListSearch('search');
  const list = useList<Account>('/admin/v1/accounts', { search });
  return (
    <Stack gap="md">
      <SearchInput label="Search accounts" placeholder="Search by name or id" value={text} onChange={setText} />
      <ListTable
        list={list}
        label="Accounts"
        columns={columns}
        rowKey={({ id }) => id}
        empty={
          <EmptyState title={search === '' ? 'No accounts' : 'No account matches'} icon={IconBuildingBank}>
            {search === '' ? 'Make one, and put credit on it.' : 'Search for another part of the name.'}
          </EmptyState>
        }
      />
    </Stack>
  );
}

function NewAccountDialog({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState('');
  const navigate = useNavigate();
  const create = useMutation({
    mutationFn: () => createAccount({ name: name.trim() }),
    onSuccess: ({ id }) => {
      onClose();
      return navigate({ to: '/operator/accounts/$accountId', params: { accountId: id } });
    },
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (name.trim() !== '') create.mutate();
  };
  return (
    <Dialog onClose={onClose} isPending={create.isPending} title="New account">
      <form onSubmit={submit}>
        <Stack gap="md">
          <TextInput
            label="Name"
            description="A team, a customer, a product"
            data-autofocus
            value={name}
            onChange={(event) => setName(event.currentTarget.value)}
          />
          <FormError error={create.error} />
          <Group justify="flex-end">
            <Button type="submit" disabled={name.trim() === ''} loading={create.isPending}>
              Create
            </Button>
          </Group>
        </Stack>
      </form>
    </Dialog>
  );
}
