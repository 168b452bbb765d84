import { Button } from '@mantine/core';
import { IconKey, IconPlus } from '@tabler/icons-react';
import { useMemo, useState } from 'react';
import { keysOfAccount } from '../../api/keys.ts';
import { Card } from '../../components/card.tsx';
import { EmptyState } from '../../components/empty-state.tsx';
import { KeyList } from '../keys/key-list.tsx';
import type { Account } from './operator-api.ts';

/** An account's keys, which an operator creates, changes, rotates and revokes as its users do. */
export function AccountKeys({ account }: { account: Account }) {
  const [isCreating, setIsCreating] = useState(false);
  const calls = useMemo(() => keysOfAccount(account.id), [account.id]);
  return (
    <Card
      title="Keys"
      actions={
        <Button size="xs" leftSection={<IconPlus size={16} aria-hidden />} onClick={() => setIsCreating(true)}>
          Create key
        </Button>
      }
    >
      <KeyList
        calls={calls}
        isCreating={isCreating}
        onCreatingEnd={() => setIsCreating(false)}
        empty={
          <EmptyState title="No keys" icon={IconKey}>
            The account's users make their own in the console, or you make one for them here.
          </EmptyState>
        }
      />
    </Card>
  );
}
