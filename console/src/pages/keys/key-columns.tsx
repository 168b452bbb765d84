import { ActionIcon, Badge, Code, Group, Menu, Stack, Text, Tooltip } from '@mantine/core';
import { IconBan, IconDots, IconPencil, IconRefresh } from '@tabler/icons-react';
import type { ApiKey } from '../../api/keys.ts';
import type { Column } from '../../components/data-table.tsx';
import { StatusBadge } from '../../components/status-badge.tsx';
import { money } from '../../format/money.ts';
import { count } from '../../format/number.ts';
import { fromNow, time } from '../../format/time.ts';

type Action = 'edit' | 'rotate' | 'revoke';

/** The columns of the list of keys. */
export function keyColumns(onAction: (action: Action, key: ApiKey) => void): readonly Column<ApiKey>[] {
  return [
    { title: 'Name', isMain: true, render: (key) => <KeyName apiKey={key} /> },
    { title: 'Key', render: (key) => <Code style={{ whiteSpace: 'nowrap' }}>{key.prefix}…</Code> },
    { title: 'Status', render: (key) => <KeyStatus apiKey={key} /> },
    { title: 'May call', render: (key) => <Scope apiKey={key} /> },
    { title: 'Limits', render: (key) => limitsText(key) },
    { title: 'Budget', render: (key) => budgetText(key) },
    { title: 'Last used', render: (key) => <Moment at={key.last_used_at} /> },
    { title: 'Actions', align: 'right', render: (key) => <KeyMenu apiKey={key} onAction={onAction} /> },
  ];
}

function KeyName({ apiKey }: { apiKey: ApiKey }) {
  return (
    <Group gap={6} wrap="nowrap">
      <Text size="sm" fw={600} maw={220} style={{ overflowWrap: 'break-word' }}>
        {apiKey.name}
      </Text>
      {apiKey.kind !== 'standard' && <Badge variant="default">{apiKey.kind}</Badge>}
    </Group>
  );
}

function KeyStatus({ apiKey }: { apiKey: ApiKey }) {
  const { status, expires_at: expires, revoked_at: revoked, rotated_to: next = null } = apiKey;
  const since = status === 'revoked' ? revoked : expires;
  return (
    <div>
      <StatusBadge status={status} />
      {since !== null && (
        <Text size="xs" c="dimmed">
          {status === 'active' ? `${next === null ? '' : 'replaced, '}expires ${fromNow(since)}` : fromNow(since)}
        </Text>
      )}
    </div>
  );
}

function Scope({ apiKey: { kind, capabilities, models } }: { apiKey: ApiKey }) {
  if (kind === 'operator') return 'Operator API only';
  if (capabilities === null && models === null) return 'Everything';
  return (
    <Stack gap={2} maw={220}>
      {capabilities !== null && <Text size="sm">{capabilities.join(', ')}</Text>}
      {models !== null && (
        <Text size="xs" c="dimmed" lineClamp={2} title={models.join(', ')}>
          {models.join(', ')}
        </Text>
      )}
    </Stack>
  );
}

function limitsText({ rpm, tpm, concurrency, model_limits: perModel }: ApiKey): string {
  const models = Object.keys(perModel ?? {}).length;
  const parts = [
    ...(rpm === null ? [] : [`${count(rpm)} requests/min`]),
    ...(tpm === null ? [] : [`${count(tpm)} tokens/min`]),
    ...(concurrency === null ? [] : [`${count(concurrency)} at once`]),
    ...(models === 0 ? [] : [`${models} ${models === 1 ? 'model' : 'models'} limited`]),
  ];
  return parts.length === 0 ? 'None' : parts.join(', ');
}

function budgetText({ budget }: ApiKey): string {
  if (budget === null) return 'None';
  const period = budget.period === 'never' ? '' : ` this ${budget.period}`;
  return `${money(budget.spent)} of ${money(budget.amount)}${period}`;
}

function Moment({ at }: { at: number | null }) {
  if (at === null) return 'Never';
  return (
    <Tooltip label={time(at)}>
      <span>{fromNow(at)}</span>
    </Tooltip>
  );
}

function KeyMenu({ apiKey, onAction }: { apiKey: ApiKey; onAction: (action: Action, key: ApiKey) => void }) {
  if (apiKey.status === 'revoked') return null;
  return (
    <Menu position="bottom-end" withinPortal>
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" aria-label={`Actions for ${apiKey.name}`}>
          <IconDots size={18} aria-hidden />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Item leftSection={<IconPencil size={16} />} onClick={() => onAction('edit', apiKey)}>
          Edit
        </Menu.Item>
        {apiKey.status === 'active' && (
          <Menu.Item leftSection={<IconRefresh size={16} />} onClick={() => onAction('rotate', apiKey)}>
            Rotate
          </Menu.Item>
        )}
        <Menu.Item
          c="var(--mantine-color-error)"
          leftSection={<IconBan size={16} />}
          onClick={() => onAction('revoke', apiKey)}
        >
          Revoke
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
