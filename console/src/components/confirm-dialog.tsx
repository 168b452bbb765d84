import { Button, Group, Stack } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { Dialog } from './dialog.tsx';
import { FormError } from './error-panel.tsx';

/**
 * Asks for confirmation of an irreversible action. `onConfirm` is awaited: the dialog shows progress, shows an error, and
 * closes afterwards.
 */
export function ConfirmDialog({
  opened,
  title,
  children,
  confirmLabel,
  onConfirm,
  onClose,
}: {
  opened: boolean;
  title: string;
  children: ReactNode;
  confirmLabel: string;
  onConfirm: () => Promise<unknown>;
  onClose: () => void;
}) {
  const close = (): void => {
    action.reset();
    onClose();
  };
  const action = useMutation({ mutationFn: onConfirm, onSuccess: close });
  if (!opened) return null;
  return (
    <Dialog onClose={close} isPending={action.isPending} title={title}>
      <Stack gap="md">
        <div>{children}</div>
        <FormError error={action.error} />
        <Group justify="flex-end" gap="xs">
          <Button variant="default" onClick={close} disabled={action.isPending} data-autofocus>
            Keep
          </Button>
          <Button color="red.9" loading={action.isPending} onClick={() => action.mutate()}>
            {confirmLabel}
          </Button>
        </Group>
      </Stack>
    </Dialog>
  );
}
