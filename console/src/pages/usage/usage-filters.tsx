import { Button, NativeSelect, SimpleGrid, TextInput } from '@mantine/core';
import { useDebouncedCallback } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { useEffect, useMemo, useState } from 'react';
import { usageQuery } from '../../api/usage.ts';
import type { UsageScope } from './usage-scope.ts';
import type { UsageFilters as Filters, Period, SearchChange } from './usage-search.ts';
import { spanOf } from './usage-span.ts';

const periodNames: { value: Period; label: string }[] = [
  { value: '24h', label: '24 hours' },
  { value: '7d', label: '7 days' },
  { value: '30d', label: '30 days' },
  { value: '90d', label: '90 days' },
];

const filterNames = ['from', 'to', 'account', 'model', 'key', 'endpoint', 'capability', 'vendor', 'tag'] as const;
const cleared = Object.fromEntries(filterNames.map((name) => [name, undefined]));

type UsedName = 'account' | 'model' | 'key' | 'endpoint' | 'capability' | 'vendor';

interface UsageFiltersProps {
  readonly scope: UsageScope;
  readonly filters: Filters;
  readonly onChange: (change: SearchChange<Filters>) => void;
  /** Further fields, in the same row. */
  readonly children?: React.ReactNode;
}

/** What of the usage is shown. */
export function UsageFilters({ scope, filters, onChange, children }: UsageFiltersProps) {
  const hasOwnSpan = filters.from !== undefined || filters.to !== undefined;
  const isFiltered = filterNames.some((name) => filters[name] !== undefined);
  // Every account's keys would be a long list, and slow to find; what is chosen already is shown in any case.
  const hasKeys = !scope.isOfAll || filters.account !== undefined || filters.key !== undefined;
  const used = (label: string, by: UsedName) => <UsedValues {...{ label, by, scope, filters, onChange }} />;
  return (
    <SimpleGrid component="search" cols={{ base: 2, sm: 3, lg: 6 }} spacing="sm" style={{ alignItems: 'end' }}>
      <NativeSelect
        label="Period"
        value={hasOwnSpan ? 'own' : (filters.period ?? '30d')}
        onChange={({ currentTarget: { value } }) =>
          onChange({ period: value as Period, from: undefined, to: undefined })
        }
        data={hasOwnSpan ? [{ value: 'own', label: 'As chosen' }, ...periodNames] : periodNames}
      />
      {scope.isOfAll && used('Account', 'account')}
      {used('Model', 'model')}
      {hasKeys && used('Key', 'key')}
      {used('Endpoint', 'endpoint')}
      {filters.capability !== undefined && used('Capability', 'capability')}
      {filters.vendor !== undefined && used('Vendor', 'vendor')}
      <TagField value={filters.tag ?? ''} onChange={(tag) => onChange({ tag: tag === '' ? undefined : tag })} />
      {children}
      {isFiltered && (
        <Button variant="subtle" onClick={() => onChange(cleared)}>
          Clear filters
        </Button>
      )}
    </SimpleGrid>
  );
}

/** A choice among the values that were used in the period. */
function UsedValues({ label, by, scope, filters, onChange }: UsageFiltersProps & { label: string; by: UsedName }) {
  const { account, period = '30d' } = filters;
  const span = useMemo(() => spanOf({ period }), [period]);
  const usage = useQuery({
    ...usageQuery({ ...span, ...(by === 'account' ? {} : { account }), group_by: by }, scope.usagePath),
    staleTime: 60_000,
    placeholderData: (before) => before,
  });
  const chosen = filters[by] ?? '';
  const used = (usage.data?.data ?? [])
    .filter(({ group }) => group !== '')
    .map(({ group, label: name }) => ({ value: String(group), label: name }));
  const isKnown = chosen === '' || used.some(({ value }) => value === chosen);
  return (
    <NativeSelect
      label={label}
      value={chosen}
      onChange={({ currentTarget: { value } }) => onChange({ [by]: value === '' ? undefined : value })}
      data={[{ value: '', label: 'All' }, ...(isKnown ? [] : [{ value: chosen, label: chosen }]), ...used]}
    />
  );
}

/** `name:value` of the requests' metadata; asked for once the reader stops writing. */
function TagField({ value, onChange }: { value: string; onChange: (value: string) => void }) {
  const [text, setText] = useState(value);
  const tell = useDebouncedCallback((tag: string) => {
    if (tag === '' || /^[^:]+:.+/.test(tag)) onChange(tag);
  }, 400);
  useEffect(() => setText(value), [value]);
  const isHalf = text !== '' && !/^[^:]+:.+/.test(text);
  return (
    <TextInput
      label="Tag"
      placeholder="name:value"
      aria-invalid={isHalf}
      title="A metadata tag of the requests, as name:value"
      value={text}
      onChange={({ currentTarget }) => {
        setText(currentTarget.value);
        tell(currentTarget.value.trim());
      }}
    />
  );
}
