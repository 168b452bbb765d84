import { Button } from '@mantine/core';
import { IconPlus } from '@tabler/icons-react';
import { useState } from 'react';
import { Card } from '../../components/card.tsx';
import { PageHeader } from '../../components/page-header.tsx';
import { OperatorsOnly } from './operators-only.tsx';
import { InviteDialog } from './user-dialogs.tsx';
import { UserTable } from './user-table.tsx';

/** All users, with their roles and accounts. */
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
