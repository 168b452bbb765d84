import { Alert, Button, Code, SimpleGrid, Skeleton, Stack, Text } from '@mantine/core';
import { IconPlayerPlay, IconPlugOff } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { Fragment, type ReactNode } from 'react';
import { type ModelDetails, modelQuery, type RouteOfModel } from '../../api/models.ts';
import { useSession } from '../../api/session.ts';
import { Card } from '../../components/card.tsx';
import { type Column, DataTable } from '../../components/data-table.tsx';
import { ErrorPanel } from '../../components/error-panel.tsx';
import { Facts } from '../../components/facts.tsx';
import { PageHeader } from '../../components/page-header.tsx';
import { StatusBadge } from '../../components/status-badge.tsx';
import { TextLink } from '../../components/text-link.tsx';
import { money } from '../../format/money.ts';
import { count } from '../../format/number.ts';
import { time } from '../../format/time.ts';
import { type PlaygroundTab, playgroundTabs } from '../playground/playground-search.ts';
import { ModelCode } from './model-code.tsx';
import { PriceTable } from './price-table.tsx';

const route = getRouteApi('/shell/models/$');

/** One model: its features, its vendors and prices, and how to call it. */
export function ModelPage() {
  const { _splat: id = '' } = route.useParams();
  const model = useQuery(modelQuery(id));
  return (
    <>
      <PageHeader title={id} description={<TextLink to="/models">All models</TextLink>}>
        {model.data !== undefined && <TryIt model={model.data} />}
      </PageHeader>
      {model.error !== null && <ErrorPanel error={model.error} onRetry={() => void model.refetch()} />}
      {model.isPending && <Skeleton height={360} />}
      {model.data !== undefined && <ModelView model={model.data} />}
    </>
  );
}

/** Request paths of the playground, by tab. */
const playgroundPaths: Readonly<Record<PlaygroundTab, string>> = {
  chat: '/v1/chat/completions',
  image: '/v1/images/generations',
  video: '/v1/videos',
  speech: '/v1/audio/speech',
  transcription: '/v1/audio/transcriptions',
};

/** Links to the playground, if that can use the model. */
function TryIt({ model: { id, available, paths } }: { model: ModelDetails }) {
  const tab = playgroundTabs.find((name) => paths.includes(playgroundPaths[name]));
  if (!available || tab === undefined) return null;
  return (
    <Button
      leftSection={<IconPlayerPlay size={18} aria-hidden />}
      renderRoot={(props) => <Link to="/playground" search={{ tab, model: id }} {...props} />}
    >
      Try it
    </Button>
  );
}

function ModelView({ model }: { model: ModelDetails }) {
  const { deprecated_at: deprecated } = model;
  return (
    <Stack gap="md">
      {!model.available && <NotAvailable model={model} />}
      <SimpleGrid cols={{ base: 1, md: 2 }} spacing="md">
        <Card title="Details" actions={<StatusBadge status={model.available ? 'available' : 'not available'} />}>
          <Facts
            lines={{
              Kind: model.capability,
              'Made by': model.owned_by,
              'Context window': tokens(model.context_window),
              'Maximum output': tokens(model.max_output_tokens),
              Input: model.input?.join(', '),
              Output: model.output?.join(', '),
              Reasoning: model.reasoning === true ? 'yes' : null,
              Endpoints: listOf(model.paths, (path) => <Code>{path}</Code>),
              'Another name of': model.alias_of === null ? null : <ModelLink id={model.alias_of} />,
              'Other names': listOf(model.aliases, (id) => <ModelLink id={id} />),
              Fallbacks: listOf(model.fallbacks, (id) => <ModelLink id={id} />),
              'Shut down on': deprecated === null ? null : time(deprecated),
            }}
          />
        </Card>
        <Card title="Prices">
          <PriceTable prices={model.prices} />
        </Card>
      </SimpleGrid>
      <Card title="Vendor routes">
        <DataTable label="Vendor routes" columns={routeColumns} rows={model.routes} rowKey={(one) => one.route} />
      </Card>
      <Card title="Call it">
        <ModelCode model={model} />
      </Card>
    </Stack>
  );
}

const routeColumns: readonly Column<RouteOfModel>[] = [
  { title: 'Route', isMain: true, render: (one) => <span className="said">{one.route}</span> },
  { title: 'State', render: (one) => <StatusBadge status={one.on ? 'on' : 'off'} /> },
  { title: 'Region', render: (one) => one.region ?? 'any' },
  { title: 'Context', align: 'right', render: (one) => count(one.context_window) },
  { title: 'Maximum output', align: 'right', render: (one) => count(one.max_output_tokens) },
  { title: 'Input $/M', align: 'right', render: (one) => money(one.prices?.input) },
  { title: 'Output $/M', align: 'right', render: (one) => money(one.prices?.output) },
];

/** Why a model is unavailable, and how to enable it. */
function NotAvailable({ model: { routes } }: { model: ModelDetails }) {
  const { user } = useSession();
  const byVendor = new Map(routes.map(({ vendor, settings }) => [vendor, settings]));
  const ways = [...byVendor].map(([vendor, settings]) => (
    <Text size="sm" key={vendor}>
      <b>{vendor}</b>:{' '}
      {settings.length === 0 ? (
        'in the configuration file'
      ) : (
        <>
          set{' '}
          {listOf(
            settings,
            (name) => (
              <Code>{name}</Code>
            ),
            ' and ',
          )}
        </>
      )}
    </Text>
  ));
  return (
    <Alert color="yellow" title="Not available on this gateway" icon={<IconPlugOff aria-hidden />}>
      <Stack gap={4}>
        <Text size="sm">
          {byVendor.size === 1 ? 'Its vendor is off. ' : 'All its vendors are off. '}
          {user.role === 'operator'
            ? 'Turn one on by its setting and a restart, or in the configuration file:'
            : 'An operator of this gateway can turn one on:'}
        </Text>
        {ways}
      </Stack>
    </Alert>
  );
}

function ModelLink({ id }: { id: string }) {
  return (
    <TextLink to="/models/$" params={{ _splat: id }}>
      {id}
    </TextLink>
  );
}

function tokens(value: number | null): string | null {
  return value === null ? null : `${count(value)} tokens`;
}

/** Items in a row; null if there are none. */
function listOf(items: readonly string[], render: (item: string) => ReactNode, separator = ', '): ReactNode {
  if (items.length === 0) return null;
  return items.map((item, index) => (
    <Fragment key={item}>
      {index > 0 && separator}
      {render(item)}
    </Fragment>
  ));
}
