import { Button, Stack, TextInput } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { IconPlus, IconSearch, IconUsers } from '@tabler/icons-react';
import { useState } from 'react';
import { useList } from '../../api/lists.ts';
import { useSession } from '../../api/session.ts';
import { Card } from '../../components/card.tsx';
import { ListTable } from '../../components/data-table.tsx';
import { EmptyState } from '../../components/empty-state.tsx';
import { PageHeader } from '../../components/page-header.tsx';
import type { ConsoleUser } from './operator-api.ts';
import { OperatorsOnly } from './operators-only.tsx';
import { type UserAction, userColumns } from './user-columns.tsx';
import { ConfirmUserAction, InviteDialog, MoveUserDialog, ResetLinkDialog } from './user-dialogs.tsx';

/** Who can sign in, what they may do, and whose usage they see. */
export function UsersPage() {
  const [isInviting, setIsInviting] = useState(false);
  return (
    <OperatorsOnly>
      <PageHeader title="Users" description="Who can sign in to this console.">
        <Button leftSection={<IconPlus size={18} aria-hidden />} onClick={() => setIsInviting(true)}>
          Invite user
        </Button>
      </PageHeader>
      <Card>
        <UserTable />
      </Card>
      {isInviting && <InviteDialog onClose={() => setIsInviting(false)} />}
    </OperatorsOnly>
  );
}

function UserTable() {
  const [text, setText] = useState('');
  const [search] = useDebouncedValue(text.trim(), 250);
  const users = useList<ConsoleUser>('/admin/v1/users', search === '' ? {} : { search });
  const { user } = useSession();
  const [doing, setDoing] = useState<{ readonly what: UserAction; readonly user: ConsoleUser }>();
  const stop = (): void => setDoing(undefined);
  return (
    <Stack gap="md">
      <TextInput
        aria-label="Search users"
        placeholder="Search by email or name"
        leftSection={<IconSearch size={16} aria-hidden />}
        value={text}
        maxLength={200}
        onChange={(event) => setText(event.currentTarget.value)}
        maw={360}
      />
      <ListTable
        list={users}
        label="Users"
        columns={userColumns(user.id, (what, chosen) => setDoing({ what, user: chosen }))}
        rowKey={({ id }) => id}
        empty={
          <EmptyState title={search === '' ? 'No users' : 'No user matches'} icon={IconUsers}>
            {search === '' ? 'Invite somebody.' : 'Search for another part of the email or the name.'}
          </EmptyState>
        }
      />
      {doing?.what === 'move' && <MoveUserDialog user={doing.user} onClose={stop} />}
      {doing?.what === 'reset' && <ResetLinkDialog user={doing.user} onClose={stop} />}
      {doing !== undefined && doing.what !== 'move' && doing.what !== 'reset' && (
        <ConfirmUserAction what={doing.what} user={doing.user} onClose={stop} />
      )}
    </Stack>
  );
}
