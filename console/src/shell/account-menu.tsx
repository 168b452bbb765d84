import { Avatar, Box, Group, Menu, Text, UnstyledButton } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { IconChevronDown, IconLogout, IconSettings } from '@tabler/icons-react';
import { useMutation } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { signOut } from '../api/auth.ts';
import { useSession } from '../api/session.ts';
import { errorText } from '../components/error-panel.tsx';
import { money } from '../format/money.ts';

/** The signed-in user and the account's balance; opens the settings and signs out. */
export function AccountMenu() {
  const { user, account } = useSession();
  const navigate = useNavigate();
  const leave = useMutation({
    mutationFn: () => signOut(() => navigate({ to: '/sign-in' })),
    onError: (error) => notifications.show({ color: 'red', title: 'Not signed out', message: errorText(error) }),
  });
  const balance = account.balance === null ? 'Unlimited' : money(account.balance);
  return (
    <Menu position="bottom-end" width={240} withinPortal>
      <Menu.Target>
        <UnstyledButton px={6} py={4} bdrs="md">
          <Group gap="xs" wrap="nowrap">
            <Avatar name={user.name || user.email} size={30} radius="xl" color="sluice" aria-hidden />
            <span className="visually-hidden">Account menu</span>
            <Box visibleFrom="xs" maw={180}>
              <Text size="sm" fw={600} truncate lh={1.2}>
                {account.name}
              </Text>
              <Text size="xs" c="dimmed" className="numbers" lh={1.2}>
                {balance}
              </Text>
            </Box>
            <IconChevronDown size={16} aria-hidden />
          </Group>
        </UnstyledButton>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>
          {user.email}
          <br />
          Balance: {balance}
        </Menu.Label>
        <Menu.Item renderRoot={(props) => <Link to="/settings" {...props} />} leftSection={<IconSettings size={16} />}>
          Settings
        </Menu.Item>
        <Menu.Item leftSection={<IconLogout size={16} />} onClick={() => leave.mutate()}>
          Sign out
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
