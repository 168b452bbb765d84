import { Button, Select, Stack, Text } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { IconUsers } from '@tabler/icons-react';
import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { useList } from '../../api/lists.ts';
import { Card } from '../../components/card.tsx';
import { CodeBlock } from '../../components/code-block.tsx';
import { type Column, ListTable } from '../../components/data-table.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { EmptyState } from '../../components/empty-state.tsx';
import { errorText } from '../../components/error-panel.tsx';
import { PageHeader } from '../../components/page-header.tsx';
import { time } from '../../format/time.ts';
import { type Account, type ConsoleUser, changeUser, resetLinkOf } from './operator-api.ts';
import { OperatorsOnly } from './operators-only.tsx';

/** Who can sign in, what they may, and whose usage they see. */
export function UsersPage() {
  return (
    <OperatorsOnly>
      <PageHeader title="Users" description="Who can sign in to this console." />
      <Card>
        <UserTable />
      </Card>
    </OperatorsOnly>
  );
}

function UserTable() {
  const users = useList<ConsoleUser>('/admin/v1/users');
  const accounts = useList<Account>('/admin/v1/accounts', {}, { pageSize: 100 });
  const [link, setLink] = useState<{ email: string; url: string }>();
  const tellError = (error: Error): void => {
    notifications.show({ color: 'red', title: 'Not done', message: errorText(error) });
  };
  const change = useMutation({
    mutationFn: ({ id, ...values }: { id: string; role?: string; account_id?: string }) => changeUser(id, values),
    onError: tellError,
  });
  const reset = useMutation({
    mutationFn: async ({ id, email }: ConsoleUser) => ({ email, ...(await resetLinkOf(id)) }),
    onSuccess: setLink,
    onError: tellError,
  });
  const isBusy = change.isPending || reset.isPending;
  return (
    <>
      <ListTable
        list={users}
        label="Users"
        columns={userColumns({ accounts: accounts.rows, isBusy, change: change.mutate, reset: reset.mutate })}
        rowKey={({ id }) => id}
        empty={
          <EmptyState title="No users" icon={IconUsers}>
            People sign up by themselves where sign-up is open.
          </EmptyState>
        }
      />
      {link !== undefined && (
        <Dialog onClose={() => setLink(undefined)} title="Password reset link" size="lg">
          <Stack gap="sm">
            <Text size="sm">
              Give this link to {link.email}. Whoever has it can set the password, once and for a short time.
            </Text>
            <CodeBlock code={link.url} label="The link" />
          </Stack>
        </Dialog>
      )}
    </>
  );
}

function userColumns(props: {
  accounts: readonly Account[];
  isBusy: boolean;
  change: (values: { id: string; role?: string; account_id?: string }) => void;
  reset: (user: ConsoleUser) => void;
}): readonly Column<ConsoleUser>[] {
  const { accounts, isBusy, change, reset } = props;
  const choices = accounts.map(({ id, name }) => ({ value: id, label: name }));
  return [
    { title: 'Email', isMain: true, render: ({ email }) => email },
    { title: 'Name', render: ({ name }) => name },
    {
      title: 'Role',
      render: ({ id, email, role }) => (
        <Select
          aria-label={`Role of ${email}`}
          size="xs"
          allowDeselect={false}
          disabled={isBusy}
          data={['user', 'operator']}
          value={role}
          onChange={(next) => next !== null && next !== role && change({ id, role: next })}
          w={120}
        />
      ),
    },
    {
      title: 'Account',
      render: (user) => (
        <Select
          aria-label={`Account of ${user.email}`}
          size="xs"
          allowDeselect={false}
          searchable
          disabled={isBusy}
          data={withOwn(choices, user)}
          value={user.account_id}
          onChange={(next) => next !== null && next !== user.account_id && change({ id: user.id, account_id: next })}
          w={190}
        />
      ),
    },
    { title: 'Since', render: ({ created_at: at }) => time(at) },
    {
      title: 'Actions',
      align: 'right',
      render: (user) => (
        <Button
          size="xs"
          variant="default"
          disabled={isBusy}
          aria-label={`Reset link for ${user.email}`}
          onClick={() => reset(user)}
        >
          Reset link
        </Button>
      ),
    },
  ];
}

/** A user's account may not be among those that were read. */
function withOwn(choices: readonly { value: string; label: string }[], { account_id: id }: ConsoleUser) {
  return choices.some(({ value }) => value === id) ? [...choices] : [...choices, { value: id, label: id }];
}
