import { Button, Group, Stack } from '@mantine/core';
import type { FormEvent, MouseEvent, ReactNode } from 'react';
import type { CodeRequest } from '../code/code-snippets.ts';
import { RequestCode } from '../code/request-code.tsx';
import { ModelPicker } from '../model-picker.tsx';
import { useStore } from '../state-store.ts';
import type { TaskSession } from './task-session.ts';

interface TaskFormProps<Form extends { model: string }, Result> {
  readonly session: TaskSession<Form, Result>;
  /** Path of its requests. */
  readonly path: string;
  readonly action: string;
  /** Whether the fields are complete; a model is always required. */
  readonly isFilled: boolean;
  readonly onSend: () => void;
  readonly code: () => CodeRequest;
  /** The fields after the model. */
  readonly children: ReactNode;
}

/** A request's model and other fields, with two buttons: send it, and show it as code. */
export function TaskForm<Form extends { model: string }, Result>(props: TaskFormProps<Form, Result>) {
  const { session, path, action, isFilled, onSend, code, children } = props;
  const { model } = useStore(session.store).form;
  const canSend = isFilled && model !== '';
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (canSend) onSend();
  };
  return (
    <form onSubmit={submit}>
      <Stack gap="md">
        <ModelPicker path={path} value={model} onChange={(next) => session.setForm({ model: next } as Partial<Form>)} />
        {children}
        <Group gap="xs">
          <Button type="submit" disabled={!canSend} onClick={ignoreSecond}>
            {action}
          </Button>
          <RequestCode request={code} disabled={!canSend} />
        </Group>
      </Stack>
    </form>
  );
}

/** The second click of a double click would have the same made, and paid for, once more. */
function ignoreSecond(event: MouseEvent): void {
  if (event.detail > 1) event.preventDefault();
}

/** The fields with a value. */
export function given(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== '' && value !== undefined));
}
