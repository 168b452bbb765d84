import { Button, Group, Stack, TextInput } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useMutation } from '@tanstack/react-query';
import { changeName } from '../../api/auth.ts';
import { useSession } from '../../api/session.ts';
import { Card } from '../../components/card.tsx';
import { FormError } from '../../components/error-panel.tsx';
import { Facts } from '../../components/facts.tsx';
import { readForm } from '../../components/read-form.ts';
import { money } from '../../format/money.ts';

/** The user's profile; the name can be changed. */
export function ProfileCard() {
  const { user, account } = useSession();
  const change = useMutation({
    mutationFn: changeName,
    onSuccess: () => notifications.show({ color: 'green', message: 'Your name is changed.' }),
  });
  return (
    <Card title="Profile">
      <Stack gap="md">
        <Facts
          lines={{
            Email: user.email,
            Role: user.role,
            Account: account.name,
            Balance: account.balance === null ? 'Unlimited' : money(account.balance),
          }}
        />
        <form onSubmit={(event) => change.mutate((readForm(event).name ?? '').trim())}>
          <Stack gap="sm">
            <TextInput label="Name" name="name" autoComplete="name" required maxLength={100} defaultValue={user.name} />
            <FormError error={change.error} />
            <Group>
              <Button type="submit" variant="default" loading={change.isPending}>
                Save name
              </Button>
            </Group>
          </Stack>
        </form>
      </Stack>
    </Card>
  );
}
