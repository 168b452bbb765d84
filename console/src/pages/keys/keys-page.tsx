import { Button } from '@mantine/core';
import { IconKey, IconPlus } from '@tabler/icons-react';
import { getRouteApi } from '@tanstack/react-router';
import { ownKeys } from '../../api/keys.ts';
import { Card } from '../../components/card.tsx';
import { EmptyState } from '../../components/empty-state.tsx';
import { PageHeader } from '../../components/page-header.tsx';
import { KeyList } from './key-list.tsx';

const route = getRouteApi('/shell/keys');

/** The account's API keys: creates, changes, rotates and revokes them. */
export function KeysPage() {
  const { create = false } = route.useSearch();
  const navigate = route.useNavigate();
  const openForm = (isOpen: boolean): void =>
    void navigate({
      search: ({ create: _, ...rest }) => (isOpen ? { ...rest, create: true } : rest),
      replace: true,
      resetScroll: false,
    });
  const newButton = (
    <Button leftSection={<IconPlus size={16} aria-hidden />} onClick={() => openForm(true)}>
      Create key
    </Button>
  );
  return (
    <>
      <PageHeader title="Keys" description="API keys of this account. What is changed here is in force at once.">
        {newButton}
      </PageHeader>
      <Card>
        <KeyList
          calls={ownKeys}
          isCreating={create}
          onCreatingEnd={() => openForm(false)}
          empty={
            <EmptyState title="No keys yet" icon={IconKey}>
              <span>A key lets a program call this gateway, with limits and a budget if you like.</span>
              {newButton}
            </EmptyState>
          }
        />
      </Card>
    </>
  );
}
