import { Button, Group, Stack, Text } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useMutation } from '@tanstack/react-query';
import { useRef } from 'react';
import { changePassword } from '../../api/auth.ts';
import { queryClient } from '../../api/query-client.ts';
import { Card } from '../../components/card.tsx';
import { FormError } from '../../components/error-panel.tsx';
import { NewPasswordInput } from '../../components/new-password-input.tsx';
import { PasswordField } from '../../components/password-field.tsx';
import { readForm } from '../../components/read-form.ts';

/** Changes the user's password, which ends the other sessions. */
export function PasswordCard() {
  const form = useRef<HTMLFormElement>(null);
  const change = useMutation({
    mutationFn: changePassword,
    onSuccess: () => {
      form.current?.reset();
      notifications.show({ color: 'green', message: 'Your password is changed.' });
      return queryClient.invalidateQueries({ queryKey: ['/auth/list-sessions'] });
    },
  });
  return (
    <Card title="Password">
      <form
        ref={form}
        onSubmit={(event) => {
          const { current = '', password = '' } = readForm(event);
          change.mutate({ currentPassword: current, newPassword: password });
        }}
      >
        <Stack gap="sm">
          <PasswordField label="Current password" name="current" autoComplete="current-password" />
          <NewPasswordInput label="New password" name="password" />
          <Text size="sm" c="dimmed">
            All your other sessions end with the old password.
          </Text>
          <FormError error={change.error} />
          <Group>
            <Button type="submit" variant="default" loading={change.isPending}>
              Change password
            </Button>
          </Group>
        </Stack>
      </form>
    </Card>
  );
}
