import { Button } from '@mantine/core';
import { IconPlus } from '@tabler/icons-react';
import { useState } from 'react';
import { Card } from '../../components/card.tsx';
import type { Account } from './operator-api.ts';
import { InviteDialog } from './user-dialogs.tsx';
import { UserTable } from './user-table.tsx';

/** The users of an account. */
export function AccountUsers({ account }: { account: Account }) {
  const [isInviting, setIsInviting] = useState(false);
  return (
    <Card
      title="Users"
      actions={
        <Button size="xs" leftSection={<IconPlus size={16} aria-hidden />} onClick={() => setIsInviting(true)}>
          Invite user
        </Button>
      }
    >
      <UserTable account={account.id} />
      {isInviting && <InviteDialog account={account.id} onClose={() => setIsInviting(false)} />}
    </Card>
  );
}
