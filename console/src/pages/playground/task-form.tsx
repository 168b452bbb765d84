import { Button, Group, Stack } from '@mantine/core';
import type { FormEvent, ReactNode } from 'react';
import type { CodeRequest } from './code-snippets.ts';
import { RequestCode } from './request-code.tsx';

/** The fields of a request with its two buttons: send it, and show it as code. */
export function TaskForm(props: {
  action: string;
  canSend: boolean;
  onSend: () => void;
  code: () => CodeRequest;
  children: ReactNode;
}) {
  const { action, canSend, onSend, code, children } = props;
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (canSend) onSend();
  };
  return (
    <form onSubmit={submit}>
      <Stack gap="md">
        {children}
        <Group gap="xs">
          <Button type="submit" disabled={!canSend}>
            {action}
          </Button>
          <RequestCode request={code} disabled={!canSend} />
        </Group>
      </Stack>
    </form>
  );
}

/** The fields that were given a value. */
export function given(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== '' && value !== undefined));
}
