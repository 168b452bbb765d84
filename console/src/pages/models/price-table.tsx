import { Text } from '@mantine/core';
import type { ModelPrices, RequestPrice } from '../../api/models.ts';
import { type Column, DataTable } from '../../components/data-table.tsx';
import { money } from '../../format/money.ts';
import { count } from '../../format/number.ts';

interface PriceLine {
  readonly what: string;
  readonly dollars: number;
  readonly unit: string;
}

const columns: readonly Column<PriceLine>[] = [
  { title: 'What', isMain: true, render: ({ what }) => what },
  { title: 'Price', align: 'right', render: ({ dollars }) => money(dollars) },
  { title: 'For', render: ({ unit }) => unit },
];

/** A model's prices, one per line. */
export function PriceTable({ prices }: { prices: ModelPrices | null }) {
  const lines = prices === null ? [] : priceLines(prices);
  if (lines.length === 0) {
    return (
      <Text size="sm" c="dimmed">
        {prices === null
          ? 'No price is known: only accounts and keys without a limit on their spending can use it.'
          : 'Free of charge.'}
      </Text>
    );
  }
  return <DataTable label="Prices" columns={columns} rows={lines} rowKey={({ what, unit }) => `${what} ${unit}`} />;
}

const million = '1M tokens';

const tokenNames = {
  input: 'Input',
  cached_input: 'Cached input',
  cache_write: 'Cache write',
  output: 'Output',
} as const;

function priceLines(prices: ModelPrices): PriceLine[] {
  const { image_output, audio_input, image_input, image, image_kinds, second, character, request, above, tiers } =
    prices;
  return [
    ...tokenLines(prices),
    ...line('Image output', image_output, million),
    ...line('Audio input', audio_input, million),
    ...line('Image input', image_input, million),
    ...line('Image', image, 'image'),
    ...Object.entries(image_kinds ?? {}).flatMap(([kind, price]) => line(`Image, ${kind}`, price, 'image')),
    ...line('Audio or video', second, 'second'),
    ...line('Text', character, 'character'),
    ...requestLines(request),
    ...(above ?? []).flatMap((step) => tokenLines(step, `, in requests over ${count(step.tokens)} input tokens`)),
    ...Object.entries(tiers ?? {}).flatMap(([tier, own]) =>
      priceLines(own).map(({ what, ...rest }) => ({ what: `${what}, service tier ${tier}`, ...rest })),
    ),
  ];
}

function tokenLines(prices: { readonly [name in keyof typeof tokenNames]?: number | null }, when = ''): PriceLine[] {
  const names = Object.entries(tokenNames) as [keyof typeof tokenNames, string][];
  return names.flatMap(([name, what]) => line(`${what}${when}`, prices[name], million));
}

function requestLines(price: RequestPrice | null | undefined): PriceLine[] {
  if (price === null || price === undefined) return [];
  if (typeof price === 'number') return line('Request', price, 'request');
  return Object.entries(price).flatMap(([size, dollars]) =>
    line(`Request, search context ${size}`, dollars, 'request'),
  );
}

function line(what: string, dollars: number | null | undefined, unit: string): PriceLine[] {
  return dollars === null || dollars === undefined ? [] : [{ what, dollars, unit }];
}
