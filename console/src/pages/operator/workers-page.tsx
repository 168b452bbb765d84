import { Button, Group, Progress, Stack, Text } from '@mantine/core';
import { IconExternalLink, IconServer, IconStack2 } from '@tabler/icons-react';
import { gatewayNow } from '../../api/gateway-clock.ts';
import type { List } from '../../api/lists.ts';
import { Card } from '../../components/card.tsx';
import { type Column, ListTable } from '../../components/data-table.tsx';
import { EmptyState } from '../../components/empty-state.tsx';
import { PageHeader } from '../../components/page-header.tsx';
import { StatusBadge } from '../../components/status-badge.tsx';
import { bytes, count, percent } from '../../format/number.ts';
import { duration, fromNow } from '../../format/time.ts';
import { OperatorsOnly } from './operators-only.tsx';
import type { Queue, Worker } from './system-api.ts';
import { useWholeList } from './whole-list.ts';

/** Refetch interval of both. */
const everyMs = 3000;

/** The queues and the workers. */
export function WorkersPage() {
  return (
    <OperatorsOnly>
      <PageHeader
        title="Queues and workers"
        description="Queue depth and active workers. A delayed job waits until its vendor is asked again whether it is done. Refreshes every 3 s."
      />
      <QueuesAndWorkers />
    </OperatorsOnly>
  );
}

function QueuesAndWorkers() {
  const workers = useWholeList<Worker>('/admin/v1/workers', everyMs);
  return (
    <Stack gap="md">
      <Queues workers={workers} />
      <Workers list={workers} />
    </Stack>
  );
}

function queueColumns(workers: List<Worker>): readonly Column<Queue>[] {
  const isKnown = !workers.isLoading && workers.error === null;
  const workersOf = (capability: string): number =>
    workers.rows.filter(({ capabilities }) => capabilities.includes(capability)).length;
  return [
    { title: 'Queue', isMain: true, render: ({ capability }) => capability },
    { title: 'Waiting', align: 'right', render: ({ waiting }) => count(waiting) },
    { title: 'Active', align: 'right', render: ({ active }) => count(active) },
    { title: 'Delayed', align: 'right', render: ({ delayed }) => count(delayed) },
    {
      title: 'Oldest job age',
      align: 'right',
      render: ({ waiting, oldest_wait_seconds: seconds }) => (waiting === 0 ? '–' : duration(seconds * 1000)),
    },
    {
      title: 'Workers',
      align: 'right',
      render: ({ capability }) => {
        if (!isKnown) return '–';
        const there = workersOf(capability);
        return there === 0 ? <StatusBadge status="no worker" /> : count(there);
      },
    },
  ];
}

function Queues({ workers }: { workers: List<Worker> }) {
  const list = useWholeList<Queue>('/admin/v1/queues', everyMs);
  return (
    <Card
      title="Queues"
      actions={
        <Button
          component="a"
          href="/console/queues"
          target="_blank"
          rel="noreferrer"
          variant="default"
          size="xs"
          rightSection={<IconExternalLink size={16} aria-label="(new window)" />}
        >
          Open queue browser
        </Button>
      }
    >
      <ListTable
        list={list}
        label="Queues"
        columns={queueColumns(workers)}
        rowKey={({ capability }) => capability}
        empty={<EmptyState title="No queues" icon={IconStack2} />}
      />
    </Card>
  );
}

const workerColumns: readonly Column<Worker>[] = [
  {
    title: 'Worker',
    isMain: true,
    render: ({ host, pid, version, region }) => (
      <div>
        <Text size="sm" fw={500}>
          {host}
        </Text>
        <Text size="xs" c="dimmed" fw={400}>
          {[`process ${pid}`, version, region].filter((fact) => fact !== null && fact !== '').join(', ')}
        </Text>
      </div>
    ),
  },
  { title: 'Load', render: (worker) => <Load worker={worker} /> },
  { title: 'CPU', align: 'right', render: ({ cpu }) => percent(cpu, 1) },
  { title: 'Memory', align: 'right', render: ({ memory }) => bytes(memory) },
  { title: 'Lag', align: 'right', render: ({ event_loop_lag_ms: lag }) => duration(lag) },
  { title: 'Started', align: 'right', render: ({ started_at: at }) => fromNow(at, gatewayNow()) },
  { title: 'Seen', align: 'right', render: ({ seen_at: at }) => fromNow(at, gatewayNow()) },
];

function Workers({ list }: { list: List<Worker> }) {
  return (
    <Card title="Workers">
      <ListTable
        list={list}
        label="Workers"
        columns={workerColumns}
        rowKey={({ id }) => id}
        empty={
          <EmptyState title="No worker is there" icon={IconServer}>
            <span>
              Requests wait until one comes. Start one with <code>npm run worker</code>.
            </span>
          </EmptyState>
        }
      />
    </Card>
  );
}

function Load({ worker }: { worker: Worker }) {
  const { capabilities, running, concurrency } = worker;
  return (
    <Stack gap={4} miw={180}>
      {capabilities.map((capability) => {
        const [now, max] = [running[capability] ?? 0, concurrency[capability] ?? 0];
        return (
          <Group key={capability} gap="xs" wrap="nowrap">
            <Text size="xs" w={85}>
              {capability}
            </Text>
            <Progress
              value={max === 0 ? 0 : (100 * now) / max}
              flex={1}
              miw={40}
              aria-label={`Load of ${capability}`}
            />
            <Text size="xs" className="numbers" w={60} ta="right">
              {now} / {max}
            </Text>
          </Group>
        );
      })}
    </Stack>
  );
}
