import { Button, Group, NativeSelect, Stack, Text } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import type { ApiKey, KeyCalls, NewApiKey } from '../../api/keys.ts';
import { Dialog } from '../../components/dialog.tsx';
import { FormError } from '../../components/error-panel.tsx';
import { useKeptForm } from '../../components/use-kept-form.ts';
import { KeyForm } from './key-form.tsx';
import { changesOf, emptyKeyForm, keyFormOf, keyValuesOf } from './key-form-values.ts';

/** Creates a key; `onCreated` gets it with its text. What is typed stays until the key is created or the dialog closed. */
export function CreateKeyDialog({
  calls,
  onClose,
  onCreated,
}: {
  calls: KeyCalls;
  onClose: () => void;
  onCreated: (key: NewApiKey) => void;
}) {
  const { initial, keep, forget } = useKeptForm(`new-key-2 of ${calls.listPath}`, emptyKeyForm);
  const create = useMutation({ mutationFn: calls.create, onSuccess: forget });
  const close = (): void => {
    forget();
    onClose();
  };
  return (
    <Dialog onClose={close} isPending={create.isPending} title="Create an API key" size="lg">
      <KeyForm
        initial={initial}
        onTyped={keep}
        hasKinds={calls.hasKinds}
        submitLabel="Create key"
        error={create.error}
        isPending={create.isPending}
        // Only while the dialog is there: whoever has left the page stays where they are.
        onSubmit={(values) => create.mutate(keyValuesOf(values), { onSuccess: onCreated })}
        onCancel={close}
      />
    </Dialog>
  );
}

/** Changes a key; changes take effect at once. What is typed stays as for a new one, unless the key is changed meanwhile. */
export function EditKeyDialog({ calls, apiKey, onClose }: { calls: KeyCalls; apiKey: ApiKey; onClose: () => void }) {
  const [before] = useState(() => keyFormOf(apiKey));
  // Typed over other settings, it would take back what was changed in them.
  const { initial, isKept, keep, forget } = useKeptForm(`edit-key-2 ${apiKey.id} ${JSON.stringify(before)}`, before);
  const close = (): void => {
    forget();
    onClose();
  };
  const change = useMutation({
    mutationFn: (values: typeof before) => calls.change(apiKey.id, changesOf(before, values)),
    onSuccess: close,
  });
  return (
    <Dialog onClose={close} isPending={change.isPending} title={`Edit “${apiKey.name}”`} size="lg">
      {isKept && (
        <Text size="sm" c="dimmed" role="status" mb="md">
          These are changes that were typed before, and not saved. Cancel forgets them.
        </Text>
      )}
      <KeyForm
        initial={initial}
        onTyped={keep}
        submitLabel="Save changes"
        error={change.error}
        isPending={change.isPending}
        onSubmit={(values) => change.mutate(values)}
        onCancel={close}
      />
    </Dialog>
  );
}

const overlaps = [
  { value: '0', label: 'Not at all: it ends now' },
  { value: '3600', label: 'An hour' },
  { value: '86400', label: 'A day' },
  { value: '604800', label: '7 days' },
  { value: '2592000', label: '30 days' },
];

/** Replaces a key with a new one with the same settings; the old one still works for a while. */
export function RotateKeyDialog({
  calls,
  apiKey,
  onClose,
  onCreated,
}: {
  calls: KeyCalls;
  apiKey: ApiKey;
  onClose: () => void;
  onCreated: (key: NewApiKey) => void;
}) {
  const [overlap, setOverlap] = useState('86400');
  const rotate = useMutation({ mutationFn: () => calls.rotate(apiKey.id, Number(overlap)) });
  return (
    <Dialog onClose={onClose} isPending={rotate.isPending} title={`Rotate “${apiKey.name}”`}>
      <Stack gap="md">
        <Text size="sm">
          A new key with the same settings is made. Put it where the old one is in use before the old one ends.
        </Text>
        <NativeSelect
          label="The old key goes on working for"
          value={overlap}
          onChange={(event) => setOverlap(event.currentTarget.value)}
          data={overlaps}
          data-autofocus
        />
        <FormError error={rotate.error} />
        <Group justify="flex-end" gap="xs">
          <Button variant="default" onClick={onClose} disabled={rotate.isPending}>
            Cancel
          </Button>
          <Button loading={rotate.isPending} onClick={() => rotate.mutate(undefined, { onSuccess: onCreated })}>
            Rotate
          </Button>
        </Group>
      </Stack>
    </Dialog>
  );
}
