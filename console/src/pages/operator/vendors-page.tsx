import { Checkbox, Code, Group, Stack, Text, TextInput, UnstyledButton } from '@mantine/core';
import { IconPlug, IconSearch } from '@tabler/icons-react';
import { useState } from 'react';
import { useListSearch } from '../../api/list-search.ts';
import { Card } from '../../components/card.tsx';
import { type Column, ListTable } from '../../components/data-table.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { EmptyState } from '../../components/empty-state.tsx';
import { PageHeader } from '../../components/page-header.tsx';
import { StatusBadge } from '../../components/status-badge.tsx';
import { OperatorsOnly } from './operators-only.tsx';
import type { Vendor } from './system-api.ts';
import { VendorDetails } from './vendor-details.tsx';
import { useWholeList } from './whole-list.ts';

/** Refetch interval of the health. */
const everyMs = 5000;

/** Every vendor, with the health of its routes as seen by the workers. */
export function VendorsPage() {
  return (
    <OperatorsOnly>
      <PageHeader title="Vendors" description="Who serves the models, and how they fare with each worker." />
      <Card>
        <VendorTable />
      </Card>
    </OperatorsOnly>
  );
}

function VendorTable() {
  const list = useWholeList<Vendor>('/admin/v1/vendors', everyMs);
  const { text, search, setText } = useListSearch('search');
  const [isOnOnly, setIsOnOnly] = useState(false);
  const [shown, setShown] = useState<string>();
  const query = search.toLowerCase();
  const rows = list.rows.filter(({ name, on }) => name.includes(query) && (on || !isOnOnly));
  // Problems come first, then enabled vendors.
  const sorted = [...rows].sort(
    (one, other) => urgency.indexOf(health(one)) - urgency.indexOf(health(other)) || one.name.localeCompare(other.name),
  );
  const vendor = list.rows.find(({ name }) => name === shown);
  return (
    <Stack gap="md">
      <Group align="flex-end" gap="md">
        <TextInput
          label="Search"
          leftSection={<IconSearch size={16} aria-hidden />}
          value={text}
          onChange={(event) => setText(event.currentTarget.value)}
          w={{ base: '100%', xs: 260 }}
        />
        <Checkbox
          label="On only"
          checked={isOnOnly}
          onChange={(event) => setIsOnOnly(event.currentTarget.checked)}
          my={8}
        />
      </Group>
      <ListTable
        list={{ ...list, rows: sorted }}
        label="Vendors"
        columns={vendorColumns(setShown)}
        rowKey={({ name }) => name}
        empty={
          <EmptyState title="No matching vendors" icon={IconPlug}>
            <span>
              A vendor is on once its key is set, <Code>OPENAI_API_KEY</Code> say, or the configuration file names it.
            </span>
          </EmptyState>
        }
      />
      {vendor !== undefined && (
        <Dialog onClose={() => setShown(undefined)} title={vendor.name} size="lg">
          <VendorDetails vendor={vendor} />
        </Dialog>
      )}
    </Stack>
  );
}

/** States of a vendor's health, worst first. */
const urgency = ['key refused', 'failing', 'no worker', 'recovering', 'keys cooling', 'healthy', 'off'] as const;

/** The worst state that any worker reports for any route. */
function health({ on, workers }: Vendor): (typeof urgency)[number] {
  if (!on) return 'off';
  if (workers.some(({ refused_keys: refused }) => refused > 0)) return 'key refused';
  const states = workers.flatMap(({ routes }) => routes.map(({ state }) => state));
  if (states.includes('open')) return 'failing';
  if (states.includes('half-open')) return 'recovering';
  if (workers.some(({ cooling_keys: cooling }) => cooling > 0)) return 'keys cooling';
  return workers.length === 0 ? 'no worker' : 'healthy';
}

function vendorColumns(show: (name: string) => void): readonly Column<Vendor>[] {
  return [
    {
      title: 'Vendor',
      isMain: true,
      render: ({ name }) => (
        <UnstyledButton
          fz="sm"
          c="var(--mantine-color-anchor)"
          onClick={() => show(name)}
          aria-label={`Details of ${name}`}
        >
          {name}
        </UnstyledButton>
      ),
    },
    { title: 'Health', render: (vendor) => <StatusBadge status={health(vendor)} /> },
    { title: 'Keys', align: 'right', render: ({ keys, needs_key: needsKey }) => (needsKey ? keys : 'none needed') },
    { title: 'Routes', align: 'right', render: ({ routes }) => routes.length },
    { title: 'Workers', align: 'right', render: ({ workers }) => workers.length },
    {
      title: 'Address',
      render: ({ base_url: url }) => (
        <Text size="xs" c="dimmed" component="span" style={{ overflowWrap: 'anywhere' }}>
          {url}
        </Text>
      ),
    },
  ];
}
