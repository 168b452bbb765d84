import { Button, Code, Group, Stack, Switch, Text, TextInput } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { AmountField } from '../../components/amount-field.tsx';
import { Card } from '../../components/card.tsx';
import { ConfirmDialog } from '../../components/confirm-dialog.tsx';
import { FormError } from '../../components/error-panel.tsx';
import { type AmountRange, readAmount } from '../../format/amount.ts';
import { type Account, changeAccount } from './operator-api.ts';

const weightRange: AmountRange = { decimals: 0, min: 1, max: 100 };

/** Renames an account, makes it unlimited or prepaid, or suspends it. */
export function AccountForm({ account }: { account: Account }) {
  const { id, suspended } = account;
  const [name, setName] = useState(account.name);
  const [weight, setWeight] = useState(String(account.queue_weight));
  const { value: readWeight } = readAmount(weight, weightRange);
  const [isSuspending, setIsSuspending] = useState(false);
  const change = useMutation({
    mutationFn: (values: Parameters<typeof changeAccount>[1]) => changeAccount(id, values),
  });
  const rename = (event: FormEvent): void => {
    event.preventDefault();
    change.mutate({ name: name.trim() });
  };
  const weigh = (event: FormEvent): void => {
    event.preventDefault();
    if (readWeight !== undefined) change.mutate({ queue_weight: readWeight });
  };
  return (
    <Card title="Account">
      <Stack gap="md">
        <form onSubmit={rename}>
          <Group align="flex-end" gap="xs" wrap="nowrap">
            <TextInput label="Name" value={name} onChange={(event) => setName(event.currentTarget.value)} flex={1} />
            <Button type="submit" variant="default" disabled={name.trim() === '' || name.trim() === account.name}>
              Rename
            </Button>
          </Group>
        </form>
        <form onSubmit={weigh}>
          <Group align="flex-end" gap="xs" wrap="nowrap">
            <AmountField
              label="Weight in queues"
              description="Its share beside other accounts whose requests wait, against their weights."
              value={weight}
              onChange={setWeight}
              range={weightRange}
              flex={1}
            />
            <Button
              type="submit"
              variant="default"
              disabled={readWeight === undefined || readWeight === account.queue_weight}
            >
              Set
            </Button>
          </Group>
        </form>
        <Switch
          label="High priority"
          description="Its keys may be allowed requests that precede those of others."
          checked={account.max_priority === 'high'}
          disabled={change.isPending}
          onChange={(event) => change.mutate({ max_priority: event.currentTarget.checked ? 'high' : 'normal' })}
        />
        <Switch
          label="Unlimited"
          description="It needs no credit. Off: it spends what is put on it, and no more."
          checked={account.is_unlimited}
          disabled={change.isPending}
          onChange={(event) => change.mutate({ is_unlimited: event.currentTarget.checked })}
        />
        <Switch
          label="Turns by key"
          description="While its requests wait, its keys have equal shares of what runs. Off: its requests run in their order."
          checked={account.queue_by_key}
          disabled={change.isPending}
          onChange={(event) => change.mutate({ queue_by_key: event.currentTarget.checked })}
        />
        <Switch
          label="Suspended"
          description="All its keys are refused until this is lifted."
          checked={suspended}
          disabled={change.isPending}
          onChange={() => (suspended ? change.mutate({ suspended: false }) : setIsSuspending(true))}
        />
        <FormError error={change.error} />
      </Stack>
      <ConfirmDialog
        opened={isSuspending}
        title="Suspend this account?"
        confirmLabel="Suspend"
        onConfirm={() => changeAccount(id, { suspended: true })}
        onClose={() => setIsSuspending(false)}
      >
        <Text size="sm">
          Requests with the keys of <Code>{account.name}</Code> are refused from now on. Nothing is deleted.
        </Text>
      </ConfirmDialog>
    </Card>
  );
}
