import { Stack, Text } from '@mantine/core';
import { IconKey } from '@tabler/icons-react';
import { type ReactNode, useState } from 'react';
import type { ApiKey, KeyCalls, NewApiKey } from '../../api/keys.ts';
import { useListSearch } from '../../api/list-search.ts';
import { useList } from '../../api/lists.ts';
import { ConfirmDialog } from '../../components/confirm-dialog.tsx';
import { ListTable } from '../../components/data-table.tsx';
import { EmptyState } from '../../components/empty-state.tsx';
import { SearchInput } from '../../components/search-input.tsx';
import { keyColumns } from './key-columns.tsx';
import { CreateKeyDialog, EditKeyDialog, RotateKeyDialog } from './key-dialogs.tsx';
import { NewKeyDialog } from './new-key-dialog.tsx';

/** The action in progress on a key. */
type Doing = { readonly what: 'edit' | 'rotate' | 'revoke'; readonly key: ApiKey };

/** What a list shows of a key that is pasted here, alone or with what stood around it: the rest of it is secret, and is not sent. */
const shownOf = (text: string): string => /sk-sluice-.{6}/.exec(text)?.[0] ?? text.trim();

/** An account's API keys: lists, changes, rotates and revokes them; `isCreating` opens the form for a new one. */
export function KeyList({
  calls,
  isCreating,
  onCreatingEnd,
  empty,
}: {
  calls: KeyCalls;
  isCreating: boolean;
  onCreatingEnd: () => void;
  empty: ReactNode;
}) {
  const { text, search, setText } = useListSearch('keys', shownOf);
  const keys = useList<ApiKey>(calls.listPath, { search });
  const [doing, setDoing] = useState<Doing>();
  const [created, setCreated] = useState<NewApiKey>();
  const stop = (): void => setDoing(undefined);
  const show = (key: NewApiKey): void => {
    onCreatingEnd();
    stop();
    setCreated(key);
  };
  return (
    <>
      <Stack gap="md">
        {(keys.rows.length > 0 || text !== '') && (
          <SearchInput label="Search keys" placeholder="Search by name, key or id" value={text} onChange={setText} />
        )}
        <ListTable
          label="API keys"
          list={keys}
          rowKey={(key) => key.id}
          columns={keyColumns((what, key) => setDoing({ what, key }))}
          empty={
            search === '' ? (
              empty
            ) : (
              <EmptyState title="No key matches" icon={IconKey}>
                Search for another part of the name, or for the beginning of the key.
              </EmptyState>
            )
          }
        />
      </Stack>
      {isCreating && <CreateKeyDialog calls={calls} onClose={onCreatingEnd} onCreated={show} />}
      {doing?.what === 'edit' && <EditKeyDialog calls={calls} apiKey={doing.key} onClose={stop} />}
      {doing?.what === 'rotate' && <RotateKeyDialog calls={calls} apiKey={doing.key} onClose={stop} onCreated={show} />}
      <ConfirmDialog
        opened={doing?.what === 'revoke'}
        title={`Revoke “${doing?.key.name ?? ''}”?`}
        confirmLabel="Revoke"
        onConfirm={() => (doing === undefined ? Promise.resolve() : calls.revoke(doing.key.id))}
        onClose={stop}
      >
        <Text size="sm">
          Every program that uses this key is refused from now on. This cannot be undone. Its usage stays in the lists.
        </Text>
      </ConfirmDialog>
      {created !== undefined && <NewKeyDialog created={created} onClose={() => setCreated(undefined)} />}
    </>
  );
}
