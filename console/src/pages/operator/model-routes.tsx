import { Stack, Text } from '@mantine/core';
import type { Model, ModelPrices } from '../../api/models.ts';
import { type Column, DataTable } from '../../components/data-table.tsx';
import { Facts } from '../../components/facts.tsx';
import { StatusBadge } from '../../components/status-badge.tsx';
import { money } from '../../format/money.ts';
import { otherPrices } from '../models/price-text.ts';

interface ModelRoute {
  /** `vendor/model`, with the vendor's name of the model. */
  readonly route: string;
  readonly vendor: string;
  readonly on: boolean;
  /** Routes of the lowest order are tried first; null: its index in the list. */
  readonly order: number | null;
  /** Its share among the routes of its order; null: 1. */
  readonly weight: number | null;
  readonly region: string | null;
  /** Null: unknown, so its cost is not charged. */
  readonly prices: ModelPrices | null;
}

/** A model as operators see it. */
export interface RoutedModel extends Model {
  readonly routes: readonly ModelRoute[];
  /** Ids of fallback models, used once all its routes have failed. */
  readonly fallbacks: readonly string[];
}

/** A model's routes in the order they are tried, with their prices. */
export function ModelRoutes({ model }: { model: RoutedModel }) {
  const orderOf = new Map(model.routes.map((route, index) => [route, route.order ?? index]));
  const routes = [...model.routes].sort((one, other) => (orderOf.get(one) ?? 0) - (orderOf.get(other) ?? 0));
  return (
    <Stack gap="md">
      <DataTable label="Routes" columns={columns} rows={routes} rowKey={({ route }) => route} />
      <Facts
        lines={{
          'Other prices': otherPrices(model.prices),
          'Stands in': model.fallbacks.length === 0 ? 'no other model' : model.fallbacks.join(', '),
        }}
      />
      {!model.available && (
        <Text size="sm" c="dimmed">
          A route is on once its vendor's key is set, or the configuration file names the vendor.
        </Text>
      )}
    </Stack>
  );
}

const columns: readonly Column<ModelRoute>[] = [
  { title: 'Route', isMain: true, render: ({ route }) => <span className="said">{route}</span> },
  { title: 'State', render: ({ on }) => <StatusBadge status={on ? 'on' : 'off'} /> },
  { title: 'Order', align: 'right', render: ({ order }) => order ?? 'as listed' },
  { title: 'Weight', align: 'right', render: ({ weight }) => weight ?? 1 },
  { title: 'Region', render: ({ region }) => region ?? 'any' },
  { title: 'Input $/M', align: 'right', render: (route) => money(route.prices?.input) },
  { title: 'Output $/M', align: 'right', render: (route) => money(route.prices?.output) },
];
