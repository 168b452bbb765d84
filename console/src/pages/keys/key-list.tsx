import { Text } from '@mantine/core';
import { type ReactNode, useState } from 'react';
import type { ApiKey, KeyCalls, NewApiKey } from '../../api/keys.ts';
import { useList } from '../../api/lists.ts';
import { ConfirmDialog } from '../../components/confirm-dialog.tsx';
import { ListTable } from '../../components/data-table.tsx';
import { keyColumns } from './key-columns.tsx';
import { CreateKeyDialog, EditKeyDialog, RotateKeyDialog } from './key-dialogs.tsx';
import { NewKeyDialog } from './new-key-dialog.tsx';

/** The action in progress on a key. */
type Doing = { readonly what: 'edit' | 'rotate' | 'revoke'; readonly key: ApiKey };

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
  const keys = useList<ApiKey>(calls.listPath);
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
      <ListTable
        label="API keys"
        list={keys}
        rowKey={(key) => key.id}
        columns={keyColumns((what, key) => setDoing({ what, key }))}
        empty={empty}
      />
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
