import { Stack } from '@mantine/core';
import { IconUsers } from '@tabler/icons-react';
import { useState } from 'react';
import { useListSearch } from '../../api/list-search.ts';
import { useList } from '../../api/lists.ts';
import { useSession } from '../../api/session.ts';
import { ListTable } from '../../components/data-table.tsx';
import { EmptyState } from '../../components/empty-state.tsx';
import { SearchInput } from '../../components/search-input.tsx';
import type { ConsoleUser } from './operator-api.ts';
import { type UserAction, userColumns } from './user-columns.tsx';
import { ConfirmUserAction, MoveUserDialog, ResetLinkDialog } from './user-dialogs.tsx';

/** Users, with an operator's actions on each: all of them, or those of one account. */
export function UserTable({ account }: { account?: string }) {
  const { text, search, setText } = useListSearch('users');
  const users = useList<ConsoleUser>('/admin/v1/users', { account, search });
  const { user } = useSession();
  const [doing, setDoing] = useState<{ readonly what: UserAction; readonly user: ConsoleUser }>();
  const columns = userColumns(user.id, (what, chosen) => setDoing({ what, user: chosen })).filter(
    ({ title }) => account === undefined || title !== 'Account',
  );
  const stop = (): void => setDoing(undefined);
  return (
    <Stack gap="md">
      <SearchInput label="Search users" placeholder="Search by email or name" value={text} onChange={setText} />
      <ListTable
        list={users}
        label="Users"
        columns={columns}
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
