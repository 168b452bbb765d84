import { Badge, Box, Group, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import type { Model } from '../../api/models.ts';
import type { Column } from '../../components/data-table.tsx';
import { TextLink } from '../../components/text-link.tsx';
import { money } from '../../format/money.ts';
import { count } from '../../format/number.ts';
import { time } from '../../format/time.ts';
import type { ModelOrder, ModelsSearch } from './models-search.ts';
import { otherPrices } from './price-text.ts';

/**
 * The columns of the price list, with sortable headers.
 * @param servedBy renders the vendors of a model
 */
export function modelColumns<Listed extends Model>(
  search: ModelsSearch,
  sortBy: (order: ModelOrder) => void,
  servedBy: (model: Listed) => ReactNode = (model) => <Quiet model={model}>{model.vendors.join(', ')}</Quiet>,
): readonly Column<Listed>[] {
  const sort = (order: ModelOrder): NonNullable<Column<Listed>['sort']> => ({
    direction: (search.order ?? 'model') !== order ? 'none' : search.falling === true ? 'descending' : 'ascending',
    toggle: () => sortBy(order),
  });
  const dollars = (title: string, order: 'input' | 'output'): Column<Listed> => ({
    title,
    align: 'right',
    sort: sort(order),
    render: (model) => <Quiet model={model}>{money(model.prices?.[order])}</Quiet>,
  });
  return [
    { title: 'Model', isMain: true, sort: sort('model'), render: (model) => <Name model={model} /> },
    { title: 'Vendors', sort: sort('vendor'), render: servedBy },
    { title: 'Kind', render: (model) => <Quiet model={model}>{model.capability}</Quiet> },
    {
      title: 'Context',
      align: 'right',
      sort: sort('context'),
      render: (model) => <Quiet model={model}>{count(model.context_window)}</Quiet>,
    },
    dollars('Input $/M', 'input'),
    dollars('Output $/M', 'output'),
    { title: 'Other', render: (model) => <Other model={model} /> },
  ];
}

/** Unavailable models are gray, but still readable. */
function Quiet({ model, children }: { model: Model; children: ReactNode }) {
  return (
    <Text size="sm" component="span" className="numbers" {...(!model.available && { c: 'dimmed' })}>
      {children}
    </Text>
  );
}

function Name({ model }: { model: Model }) {
  return (
    <Box miw={{ sm: 230 }}>
      <Group gap={6}>
        <TextLink
          to="/models/$"
          params={{ _splat: model.id }}
          size="sm"
          fw={500}
          style={{ overflowWrap: 'anywhere' }}
          {...(!model.available && { c: 'dimmed' })}
        >
          {model.id}
        </TextLink>
        {model.reasoning === true && (
          <Badge size="xs" variant="light" color="gray" tt="none">
            reasons
          </Badge>
        )}
      </Group>
      {!model.available && (
        <Text size="xs" c="dimmed" fw={400}>
          {whyNot(model)}
        </Text>
      )}
      {model.deprecated_at !== null && (
        <Text size="xs" c="dimmed" fw={400}>
          Its vendor shuts it down on {time(model.deprecated_at)}
        </Text>
      )}
    </Box>
  );
}

/** Why a model is unavailable, in one line; its page says what to do. */
function whyNot({ vendors }: Pick<Model, 'vendors'>): string {
  const [first, ...others] = vendors;
  if (first === undefined) return 'Not available: no vendor serves it.';
  if (others.length === 0) return `Not available: ${first} is off on this gateway.`;
  return `Not available: ${vendors.join(', ')} are off on this gateway.`;
}

function Other({ model }: { model: Model }) {
  const text = otherPrices(model.prices);
  return model.prices === null || text !== '' ? (
    <Text size="xs" c="dimmed" component="span" className="numbers">
      {model.prices === null ? 'price not known' : text}
    </Text>
  ) : null;
}
