import { Button, Group, Stack, Text, TextInput } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { IconCoin } from '@tabler/icons-react';
import { useMutation } from '@tanstack/react-query';
import { type FormEvent, useRef } from 'react';
import { useList } from '../../api/lists.ts';
import { AmountField } from '../../components/amount-field.tsx';
import { Card } from '../../components/card.tsx';
import { type Column, ListTable } from '../../components/data-table.tsx';
import { EmptyState } from '../../components/empty-state.tsx';
import { FormError } from '../../components/error-panel.tsx';
import { useKeptValues } from '../../components/use-kept-form.ts';
import { type AmountRange, readAmount } from '../../format/amount.ts';
import { money } from '../../format/money.ts';
import { time } from '../../format/time.ts';
import { type Account, addCredit, type Credit } from './operator-api.ts';

const columns: readonly Column<Credit>[] = [
  { title: 'Amount', isMain: true, align: 'right', render: ({ amount }) => money(amount) },
  { title: 'Note', render: ({ note }) => (note === '' ? '–' : note) },
  { title: 'When', align: 'right', render: ({ created_at: at }) => time(at) },
];

/** An account's balance, its credits, and a form for more. */
export function AccountCredit({ account }: { account: Account }) {
  const list = useList<Credit>(`/admin/v1/accounts/${account.id}/credits`, {}, { pageSize: 20 });
  return (
    <Card title="Credit">
      <Stack gap="md">
        <div>
          <Text size="sm" c="dimmed">
            Balance
          </Text>
          <Text fz="xl" fw={650} className="numbers">
            {account.is_unlimited ? 'Unlimited' : money(account.balance)}
          </Text>
        </div>
        <CreditForm key={account.id} account={account} />
        <ListTable
          list={list}
          label="Credits"
          columns={columns}
          rowKey={({ id }) => id}
          empty={
            <EmptyState title="No credit yet" icon={IconCoin}>
              What is put on the account, or taken off it, is listed here.
            </EmptyState>
          }
        />
      </Stack>
    </Card>
  );
}

/** The fields of the form. */
interface CreditValues {
  /** As typed. */
  readonly amount: string;
  readonly note: string;
  /** A failed attempt may have been booked all the same: until it succeeds, the same credit is a repeat of it. */
  readonly attempt: { readonly id: string; readonly of: string } | undefined;
}

const noCredit: CreditValues = { amount: '', note: '', attempt: undefined };

/** Dollars and cents; below zero takes credit off. */
const creditRange: AmountRange = { decimals: 2 };

/** Not `randomUUID`: plain HTTP has none. */
function randomId(): string {
  return Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(36)).join('-');
}

/** What is typed, and its attempt, stay over a reload and the end of a session: else a repeat would be booked twice. */
function CreditForm({ account }: { account: Account }) {
  const { values, change, clear } = useKeptValues(`credit-2 of ${account.id}`, noCredit);
  const { amount, note, attempt } = values;
  const { value: dollars = 0 } = readAmount(amount, creditRange);
  const form = useRef<HTMLFormElement>(null);
  const attemptOf = (credit: object): string => {
    const of = JSON.stringify(credit);
    const next = attempt?.of === of ? attempt : { id: randomId(), of };
    change({ attempt: next });
    return next.id;
  };
  const add = useMutation({
    mutationFn: (booked: number) => {
      const credit = { amount: booked, note: note.trim() };
      return addCredit(account.id, attemptOf(credit), credit);
    },
    onSuccess: (_, booked) => {
      clear();
      // The button is off now, and keeps no focus.
      form.current?.querySelector('input')?.focus({ preventScroll: true });
      notifications.show({ color: 'green', title: 'Credit booked', message: `${money(booked)} on ${account.name}` });
    },
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (dollars !== 0) add.mutate(dollars);
  };
  return (
    <form ref={form} onSubmit={submit}>
      <Group align="flex-end" gap="xs">
        <AmountField
          label="Dollars"
          description="Below zero: off"
          placeholder="25"
          prefix="$"
          range={creditRange}
          value={amount}
          onChange={(text) => change({ amount: text })}
          w={130}
        />
        <TextInput
          label="Note"
          description="Kept in the history"
          placeholder="Invoice 17"
          value={note}
          onChange={(event) => change({ note: event.currentTarget.value })}
          flex="1 1 10rem"
        />
        <Button type="submit" disabled={dollars === 0} loading={add.isPending}>
          Add credit
        </Button>
      </Group>
      <FormError error={add.error} />
    </form>
  );
}
