import { Alert, Anchor, Button, Group, Stack, Text, TextInput } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import {
  beginAuthenticator,
  finishAuthenticator,
  type NewAuthenticator,
  newBackupCodes,
  removeAuthenticator,
} from '../../api/auth.ts';
import { useSession } from '../../api/session.ts';
import { Card } from '../../components/card.tsx';
import { CodeBlock } from '../../components/code-block.tsx';
import { FormError } from '../../components/error-panel.tsx';
import { PasswordField } from '../../components/password-field.tsx';
import { readForm } from '../../components/read-form.ts';
import { useShownOnce } from '../../shell/shown-once.ts';

/** Two-step sign-in: a code of an authenticator app in addition to the password. */
export function AuthenticatorCard() {
  const { authenticator } = useSession().user;
  const [pending, setPending] = useState<NewAuthenticator>();
  return (
    <Card title="Two-step sign-in">
      {authenticator === 'required' && (
        <Alert color="yellow" mb="sm" title="Operators need an authenticator here">
          Set one up to get the rights of an operator.
        </Alert>
      )}
      {authenticator === 'on' && <OnPart />}
      {authenticator !== 'on' && pending === undefined && <OffPart onStarted={setPending} />}
      {authenticator !== 'on' && pending !== undefined && <SetUpPart pending={pending} />}
    </Card>
  );
}

function OffPart({ onStarted }: { onStarted: (pending: NewAuthenticator) => void }) {
  const begin = useMutation({ mutationFn: beginAuthenticator, onSuccess: onStarted });
  return (
    <form onSubmit={(event) => begin.mutate(readForm(event).password ?? '')}>
      <Stack gap="sm">
        <Text size="sm">
          Off. With it, a sign-in takes a code of an authenticator app on your phone as well: a stolen password is not
          enough.
        </Text>
        <PasswordField label="Your password" name="password" autoComplete="current-password" />
        <FormError error={begin.error} />
        <Group>
          <Button type="submit" variant="default" loading={begin.isPending}>
            Set up
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

function SetUpPart({ pending }: { pending: NewAuthenticator }) {
  const finish = useMutation({
    mutationFn: finishAuthenticator,
    onSuccess: () => notifications.show({ color: 'green', message: 'Two-step sign-in is on.' }),
  });
  const secret = new URL(pending.totpURI).searchParams.get('secret') ?? '';
  return (
    <form onSubmit={(event) => finish.mutate(readForm(event).code ?? '')}>
      <Stack gap="sm">
        <Text size="sm">
          1. Enter this key in your authenticator app, or{' '}
          <Anchor href={pending.totpURI} underline="always" inherit>
            open it there
          </Anchor>
          .
        </Text>
        <CodeBlock label="Key" code={secret} shown={inGroups(secret)} />
        <Text size="sm">2. Keep these backup codes. Each signs you in once if you lose your phone.</Text>
        <CodeBlock label="Backup codes" code={pending.backupCodes.join('\n')} />
        <TextInput
          label="3. Code that the app shows now"
          name="code"
          autoComplete="one-time-code"
          inputMode="numeric"
          required
          maxLength={10}
        />
        <Text size="sm" c="dimmed">
          All your other sessions end.
        </Text>
        <FormError error={finish.error} />
        <Group>
          <Button type="submit" loading={finish.isPending}>
            Turn on
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

function OnPart() {
  const renew = useMutation({ mutationFn: newBackupCodes });
  useShownOnce(renew.data !== undefined);
  const remove = useMutation({
    mutationFn: removeAuthenticator,
    onSuccess: () => notifications.show({ color: 'green', message: 'Two-step sign-in is off.' }),
  });
  return (
    <form
      onSubmit={(event) => {
        const { submitter } = event.nativeEvent as SubmitEvent;
        const { password = '' } = readForm(event);
        if ((submitter as HTMLButtonElement | null)?.value === 'remove') remove.mutate(password);
        else renew.mutate(password);
      }}
    >
      <Stack gap="sm">
        <Text size="sm">On. A sign-in takes a code of your authenticator app.</Text>
        {renew.data !== undefined && (
          <>
            <Text size="sm">These are your backup codes now; earlier ones no longer work.</Text>
            <CodeBlock label="Backup codes" code={renew.data.backupCodes.join('\n')} />
          </>
        )}
        <PasswordField label="Your password" name="password" autoComplete="current-password" />
        <FormError error={renew.error ?? remove.error} />
        <Group>
          <Button type="submit" value="renew" variant="default" loading={renew.isPending}>
            New backup codes
          </Button>
          <Button type="submit" value="remove" variant="default" color="red" loading={remove.isPending}>
            Turn off
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

/** A key for copying by hand: in groups of four, with lines that fit a phone. */
function inGroups(key: string): string {
  const lines = key.match(/.{1,28}/g) ?? [];
  return lines.map((line) => line.replace(/(.{4})(?=.)/g, '$1 ')).join('\n');
}
