import { ActionIcon, Anchor, Menu } from '@mantine/core';
import {
  IconBan,
  IconBuildingBank,
  IconCircleCheck,
  IconDots,
  IconKey,
  IconShield,
  IconShieldOff,
  IconTrash,
} from '@tabler/icons-react';
import { Link } from '@tanstack/react-router';
import type { Column } from '../../components/data-table.tsx';
import { StatusBadge } from '../../components/status-badge.tsx';
import { time } from '../../format/time.ts';
import type { ConsoleUser } from './operator-api.ts';

/** An operator's actions on a user. */
export type UserAction = 'promote' | 'demote' | 'move' | 'reset' | 'disable' | 'enable' | 'delete';

type OnAction = (action: UserAction, user: ConsoleUser) => void;

/**
 * The columns of the list of users.
 * @param own id of the signed-in operator, who must not change themselves by mistake
 */
export function userColumns(own: string, onAction: OnAction): readonly Column<ConsoleUser>[] {
  return [
    { title: 'Email', isMain: true, render: ({ email }) => email },
    { title: 'Name', render: ({ name }) => name },
    { title: 'Role', render: ({ role }) => role },
    { title: 'Status', render: ({ disabled }) => <StatusBadge status={disabled ? 'disabled' : 'active'} /> },
    {
      title: 'Account',
      render: ({ account_id: accountId, account_name: accountName }) => (
        <Anchor
          size="sm"
          renderRoot={(props) => <Link to="/operator/accounts/$accountId" params={{ accountId }} {...props} />}
        >
          {accountName ?? accountId}
        </Anchor>
      ),
    },
    { title: 'Since', render: ({ created_at: at }) => time(at) },
    {
      title: 'Actions',
      align: 'right',
      render: (user) => <UserMenu user={user} isOwn={user.id === own} onAction={onAction} />,
    },
  ];
}

function UserMenu({ user, isOwn, onAction }: { user: ConsoleUser; isOwn: boolean; onAction: OnAction }) {
  const isOperator = user.role === 'operator';
  return (
    <Menu position="bottom-end" withinPortal>
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" aria-label={`Actions for ${user.email}`}>
          <IconDots size={18} aria-hidden />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Item leftSection={<IconKey size={16} />} onClick={() => onAction('reset', user)}>
          Password reset link
        </Menu.Item>
        <Menu.Item leftSection={<IconBuildingBank size={16} />} onClick={() => onAction('move', user)}>
          Move to another account
        </Menu.Item>
        {!isOwn && (
          <>
            <Menu.Item
              leftSection={isOperator ? <IconShieldOff size={16} /> : <IconShield size={16} />}
              onClick={() => onAction(isOperator ? 'demote' : 'promote', user)}
            >
              {isOperator ? 'Remove operator role' : 'Make operator'}
            </Menu.Item>
            <Menu.Item
              leftSection={user.disabled ? <IconCircleCheck size={16} /> : <IconBan size={16} />}
              onClick={() => onAction(user.disabled ? 'enable' : 'disable', user)}
            >
              {user.disabled ? 'Enable' : 'Disable'}
            </Menu.Item>
            <Menu.Item
              c="var(--mantine-color-error)"
              leftSection={<IconTrash size={16} />}
              onClick={() => onAction('delete', user)}
            >
              Delete
            </Menu.Item>
          </>
        )}
      </Menu.Dropdown>
    </Menu>
  );
}
