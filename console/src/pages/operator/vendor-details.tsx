import { Alert, Badge, Group, ScrollArea, Stack, Text, Title } from '@mantine/core';
import { IconKeyOff } from '@tabler/icons-react';
import { type Column, DataTable } from '../../components/data-table.tsx';
import { StatusBadge } from '../../components/status-badge.tsx';
import { fromNow } from '../../format/time.ts';
import type { RouteHealth, Vendor } from './system-api.ts';

const columns: readonly Column<RouteHealth>[] = [
  { title: 'Route', isMain: true, render: ({ route }) => route },
  { title: 'Breaker', render: ({ state }) => <StatusBadge status={state} /> },
  { title: 'Failures in a row', align: 'right', render: ({ failed_in_a_row: failed }) => failed },
  {
    title: 'Last error',
    render: ({ last_error: error }) =>
      error === null ? '–' : `${error.code}${error.status === null ? '' : ` (${error.status})`}, ${fromNow(error.at)}`,
  },
];

/** `1 accepted, 1 refused`. */
function checkOf(counts: Readonly<Record<string, number>>): string {
  return Object.entries(counts)
    .map(([outcome, count]) => `${count} ${outcome}`)
    .join(', ');
}

/** A vendor's refusal of a key, with the vendor's message. */
function Refusal({ worker, vendor }: { worker: Vendor['workers'][number]; vendor: string }) {
  const { refusal, refused_keys: refused, keys } = worker;
  if (refusal === null) return null;
  return (
    <Alert color="red" title={`Key refused (${refused} of ${keys})`} icon={<IconKeyOff size={18} aria-hidden />}>
      {refusal.message === null ? `${vendor} answered ${refusal.status}.` : `${vendor} says: ${refusal.message}`}{' '}
      {fromNow(refusal.at)}. Check the key in the gateway's settings.
    </Alert>
  );
}

/** A vendor's health as seen by each worker, and the models that it serves. */
export function VendorDetails({ vendor }: { vendor: Vendor }) {
  const { workers, routes } = vendor;
  return (
    <Stack gap="lg">
      <Stack gap="md">
        <Title order={3} size="h4">
          With each worker
        </Title>
        {workers.length === 0 && (
          <Text size="sm" c="dimmed">
            {vendor.on
              ? 'No worker is there that knows it.'
              : `It is off: set ${vendor.settings.join(' and ')} to turn it on.`}
          </Text>
        )}
        {workers.map((worker) => (
          <Stack key={worker.id} gap="xs">
            <Group gap="xs">
              <Text fw={600} size="sm">
                {worker.host}
              </Text>
              <Text size="xs" c="dimmed">
                {worker.id}
              </Text>
              {worker.cooling_keys > 0 && (
                <Badge color="yellow" variant="light" tt="none">
                  {worker.cooling_keys} of {worker.keys} keys cooling
                </Badge>
              )}
            </Group>
            {worker.key_check !== null && (
              <Text size="sm" c="dimmed">
                Keys checked at start: {checkOf(worker.key_check)}
              </Text>
            )}
            {worker.refusal !== null && <Refusal worker={worker} vendor={vendor.name} />}
            {worker.routes.length === 0 ? (
              <Text size="sm" c="dimmed">
                All its routes are healthy.
              </Text>
            ) : (
              <DataTable
                label={`Routes with ${worker.host}`}
                columns={columns}
                rows={worker.routes}
                rowKey={({ route }) => route}
              />
            )}
          </Stack>
        ))}
      </Stack>
      <Stack gap="xs">
        <Title order={3} size="h4">
          Models ({routes.length})
        </Title>
        <ScrollArea.Autosize mah={260} viewportProps={{ tabIndex: 0, role: 'region', 'aria-label': 'Models' }}>
          {routes.map(({ model, route }) => (
            <Text key={`${model} ${route}`} size="sm">
              {model}
            </Text>
          ))}
        </ScrollArea.Autosize>
      </Stack>
    </Stack>
  );
}
