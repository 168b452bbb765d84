import {
  Button,
  type ComboboxItem,
  Group,
  NativeSelect,
  type OptionsFilter,
  Select,
  Stack,
  Text,
  TextInput,
} from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { notifications } from '@mantine/notifications';
import { useMutation, useQuery } from '@tanstack/react-query';
import { type FormEvent, type ReactNode, useState } from 'react';
import { useList } from '../../api/lists.ts';
import { request } from '../../api/request.ts';
import { CodeBlock } from '../../components/code-block.tsx';
import { ConfirmDialog } from '../../components/confirm-dialog.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { ErrorPanel, FormError } from '../../components/error-panel.tsx';
import { useKeptValues } from '../../components/use-kept-form.ts';
import { useShownOnceInDialog } from '../../shell/shown-once.ts';
import { type Account, type ConsoleUser, changeUser, deleteUser, inviteUser, resetLinkOf } from './operator-api.ts';
import type { UserAction } from './user-columns.tsx';

/** The question before an action, and the message after it. */
interface Question {
  readonly title: string;
  readonly text: string;
  readonly confirm: string;
  readonly done: string;
  readonly run: (id: string) => Promise<void>;
}

const questions: Readonly<Record<Exclude<UserAction, 'move' | 'reset'>, Question>> = {
  promote: {
    title: 'Make an operator of',
    text: 'Operators see all accounts, jobs and usage, change money, keys and users, and can make other operators.',
    confirm: 'Make operator',
    done: 'is an operator now',
    run: (id) => changeUser(id, { role: 'operator' }),
  },
  demote: {
    title: 'Remove the operator role of',
    text: 'From the next request on, only the pages of the own account can be seen.',
    confirm: 'Remove role',
    done: 'is no longer an operator',
    run: (id) => changeUser(id, { role: 'user' }),
  },
  disable: {
    title: 'Disable',
    text: 'All sessions end now, and nobody can sign in as this user until you enable it again. API keys of the account go on working.',
    confirm: 'Disable',
    done: 'is disabled',
    run: (id) => changeUser(id, { disabled: true }),
  },
  enable: {
    title: 'Enable',
    text: 'The user can sign in again, with the same password.',
    confirm: 'Enable',
    done: 'can sign in again',
    run: (id) => changeUser(id, { disabled: false }),
  },
  delete: {
    title: 'Delete',
    text: 'The user and all sessions are removed. This cannot be undone. The account stays, with its API keys, its jobs and its usage.',
    confirm: 'Delete',
    done: 'is deleted',
    run: deleteUser,
  },
};

/** Asks for confirmation of an action on a user, and reports when it is done. */
export function ConfirmUserAction(props: { what: keyof typeof questions; user: ConsoleUser; onClose: () => void }) {
  const { what, user, onClose } = props;
  const { title, text, confirm, done, run } = questions[what];
  const act = async (): Promise<void> => {
    await run(user.id);
    notifications.show({ color: 'green', title: 'Done', message: `${user.email} ${done}.` });
  };
  return (
    <ConfirmDialog opened title={`${title} ${user.email}?`} confirmLabel={confirm} onConfirm={act} onClose={onClose}>
      <Text size="sm">{text}</Text>
    </ConfirmDialog>
  );
}

interface Invitation {
  readonly email: string;
  readonly role: string;
  /** Null: a new one. */
  readonly account: string | null;
}

/** Creates a user, and then shows the link by which that user chooses a password. */
export function InviteDialog({ onClose, account: first }: { onClose: () => void; account?: string }) {
  const { values, change, forget } = useKeptValues<Invitation>(`invite-1 to ${first ?? 'any'}`, {
    email: '',
    role: 'user',
    account: first ?? null,
  });
  const { email, role, account } = values;
  const invite = useMutation({
    mutationFn: () => inviteUser({ email: email.trim(), role, ...(account === null ? {} : { account_id: account }) }),
    onSuccess: forget,
  });
  const close = (): void => {
    forget();
    onClose();
  };
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (email.trim() !== '') invite.mutate();
  };
  if (invite.data !== undefined) {
    return (
      <LinkDialog title="Invitation" url={invite.data.invitation_url} onClose={onClose}>
        Give this link to {invite.data.email}. Whoever has it can choose the password, once and within 7 days.
      </LinkDialog>
    );
  }
  return (
    <Dialog onClose={close} isPending={invite.isPending} title="Invite user">
      <form onSubmit={submit}>
        <Stack gap="md">
          <TextInput
            label="Email"
            type="email"
            required
            data-autofocus
            value={email}
            maxLength={254}
            onChange={(event) => change({ email: event.currentTarget.value })}
          />
          <NativeSelect
            label="Role"
            description="Operators see all accounts and change money, keys and users."
            value={role}
            data={['user', 'operator']}
            onChange={(event) => change({ role: event.currentTarget.value })}
          />
          <AccountSelect
            label="Account"
            description="Whose keys, jobs and usage the user sees."
            placeholder="A new one"
            value={account}
            onChange={(id) => change({ account: id })}
          />
          <FormError error={invite.error} />
          <Group justify="flex-end">
            <Button type="submit" loading={invite.isPending} disabled={email.trim() === ''}>
              Invite
            </Button>
          </Group>
        </Stack>
      </form>
    </Dialog>
  );
}

/** Moves a user to another account. */
export function MoveUserDialog({ user, onClose }: { user: ConsoleUser; onClose: () => void }) {
  const [account, setAccount] = useState<string | null>(user.account_id);
  const move = useMutation({
    mutationFn: (id: string) => changeUser(user.id, { account_id: id }),
    onSuccess: () => {
      notifications.show({ color: 'green', title: 'Done', message: `${user.email} has another account now.` });
      onClose();
    },
  });
  const isSame = account === null || account === user.account_id;
  return (
    <Dialog onClose={onClose} isPending={move.isPending} title={`Move ${user.email}`}>
      <Stack gap="md">
        <Text size="sm">
          From the next request on, the user sees the keys, jobs and usage of the account that you choose here, and no
          longer those of the present one.
        </Text>
        <AccountSelect label="Account" own={user.account_id} value={account} onChange={setAccount} />
        <FormError error={move.error} />
        <Group justify="flex-end" gap="xs">
          <Button variant="default" onClick={onClose} disabled={move.isPending}>
            Cancel
          </Button>
          <Button disabled={isSame} loading={move.isPending} onClick={() => account !== null && move.mutate(account)}>
            Move
          </Button>
        </Group>
      </Stack>
    </Dialog>
  );
}

/** Creates a link for a new password, and shows it. */
export function ResetLinkDialog({ user, onClose }: { user: ConsoleUser; onClose: () => void }) {
  // Each request creates another link, so only once per dialog.
  const link = useQuery({
    queryKey: ['reset-link', user.id],
    queryFn: () => resetLinkOf(user.id),
    ...{ staleTime: Number.POSITIVE_INFINITY, gcTime: 0, retry: false },
  });
  if (link.error !== null) {
    return (
      <Dialog onClose={onClose} title="Password reset link">
        <ErrorPanel error={link.error} onRetry={() => void link.refetch()} />
      </Dialog>
    );
  }
  if (link.data === undefined) return null;
  return (
    <LinkDialog title="Password reset link" url={link.data.url} onClose={onClose}>
      Give this link to {user.email}. Whoever has it can set the password, once and within the hour.
    </LinkDialog>
  );
}

function LinkDialog(props: { title: string; url: string; children: ReactNode; onClose: () => void }) {
  useShownOnceInDialog();
  return (
    <Dialog onClose={props.onClose} title={props.title} size="lg">
      <Stack gap="sm">
        <Text size="sm">{props.children}</Text>
        <CodeBlock code={props.url} label="The link" />
      </Stack>
    </Dialog>
  );
}

/**
 * A choice of accounts by name: those that match what is typed, as there may be too many to load.
 * @param own the user's present account, which cannot be cleared
 */
function AccountSelect(props: {
  label: string;
  description?: string;
  placeholder?: string;
  own?: string;
  value: string | null;
  onChange: (id: string | null) => void;
}) {
  const { own, value, ...rest } = props;
  const [text, setText] = useState('');
  const [search] = useDebouncedValue(text.trim(), 250);
  const path = `/admin/v1/accounts/${encodeURIComponent(value ?? '')}`;
  const chosen = useQuery({
    queryKey: [path],
    queryFn: ({ signal }) => request<Account>('GET', path, { signal }),
    enabled: value !== null,
  });
  // What is chosen stands in the field, and is no search then.
  const name = value === null ? undefined : (chosen.data?.name ?? value);
  const { rows } = useList<Account>('/admin/v1/accounts', search === name ? {} : { search }, { pageSize: 100 });
  const choices = rows.filter(({ id }) => id !== value).map(({ id, name: label }) => ({ value: id, label }));
  return (
    <Select
      {...rest}
      value={value}
      searchable
      clearable={own === undefined}
      allowDeselect={false}
      onSearchChange={setText}
      filter={byNameOrId}
      data={value === null || name === undefined ? choices : [{ value, label: name }, ...choices]}
    />
  );
}

/** The list is searched by the gateway, which knows an account by its id, too. */
const byNameOrId: OptionsFilter = ({ options, search }) => {
  const part = search.trim().toLowerCase();
  return (options as ComboboxItem[]).filter(({ label, value }) => `${label}\n${value}`.toLowerCase().includes(part));
};
