import { Button, NativeSelect, SimpleGrid, TextInput } from '@mantine/core';
import { useDebouncedCallback } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { useEffect, useMemo, useState } from 'react';
import { usageQuery } from '../../api/usage.ts';
import { localMinute } from '../../format/time.ts';
import type { UsageScope } from './usage-scope.ts';
import { type JobsSearch, type Period, type SearchChange, usualPeriod } from './usage-search.ts';
import { spanOf } from './usage-span.ts';

const periodNames: { value: Period; label: string }[] = [
  { value: '24h', label: '24 hours' },
  { value: '7d', label: '7 days' },
  { value: '30d', label: '30 days' },
  { value: '90d', label: '90 days' },
];

const statuses = ['completed', 'failed', 'cancelled', 'unfinished'];

const filterNames = [
  ...(['from', 'to', 'account', 'model', 'key'] as const),
  ...(['endpoint', 'capability', 'vendor', 'tag', 'status'] as const),
];

type UsedName = 'account' | 'model' | 'key' | 'endpoint' | 'capability' | 'vendor';

interface UsageFiltersProps {
  /** For jobs, the status can be chosen too, and without a period they are of any time. */
  readonly of: 'usage' | 'jobs';
  readonly scope: UsageScope;
  readonly filters: JobsSearch;
  readonly onChange: (change: SearchChange<JobsSearch>) => void;
  /** Further fields, in the same row. */
  readonly children?: React.ReactNode;
}

/** Filters of the usage, or of the jobs. */
export function UsageFilters({ of, scope, filters, onChange, children }: UsageFiltersProps) {
  const names = of === 'jobs' ? ([...filterNames, 'period'] as const) : filterNames;
  const isFiltered = names.some((name) => filters[name] !== undefined);
  // The keys of all accounts would be a long list, and slow to find; an existing choice is always shown.
  const hasKeys = !scope.isOfAll || filters.account !== undefined || filters.key !== undefined;
  const used = (label: string, by: UsedName) => <UsedValues {...{ label, by, of, scope, filters, onChange }} />;
  return (
    <SimpleGrid component="search" cols={{ base: 2, sm: 3, lg: 6 }} spacing="sm" style={{ alignItems: 'end' }}>
      <PeriodFields {...{ of, filters, onChange }} />
      {scope.isOfAll && used('Account', 'account')}
      {used('Model', 'model')}
      {hasKeys && used('Key', 'key')}
      {used('Endpoint', 'endpoint')}
      {filters.capability !== undefined && used('Capability', 'capability')}
      {filters.vendor !== undefined && used('Vendor', 'vendor')}
      <TagField value={filters.tag ?? ''} onChange={(tag) => onChange({ tag: tag === '' ? undefined : tag })} />
      {of === 'jobs' && (
        <NativeSelect
          label="Status"
          value={filters.status ?? ''}
          onChange={({ currentTarget: { value } }) => onChange({ status: value === '' ? undefined : value })}
          data={[{ value: '', label: 'All' }, ...statuses]}
        />
      )}
      {children}
      {isFiltered && (
        <Button variant="subtle" onClick={() => onChange(Object.fromEntries(names.map((name) => [name, undefined])))}>
          Clear filters
        </Button>
      )}
    </SimpleGrid>
  );
}

/** A span that ends now, or a custom span. */
function PeriodFields({ of, filters, onChange }: Pick<UsageFiltersProps, 'of' | 'filters' | 'onChange'>) {
  const hasOwnSpan = filters.from !== undefined || filters.to !== undefined;
  const usual = of === 'jobs' ? 'any' : usualPeriod;
  const choose = (value: string): void => {
    if (value === 'own') onChange({ period: undefined, ...spanOf(filters) });
    else onChange({ period: value === 'any' ? undefined : (value as Period), from: undefined, to: undefined });
  };
  const { from, to } = spanOf(filters);
  return (
    <>
      <NativeSelect
        label="Period"
        value={hasOwnSpan ? 'own' : (filters.period ?? usual)}
        onChange={({ currentTarget }) => choose(currentTarget.value)}
        data={[
          ...(of === 'jobs' ? [{ value: 'any', label: 'Any time' }] : []),
          ...periodNames,
          { value: 'own', label: 'From … to …' },
        ]}
      />
      {hasOwnSpan && (
        <>
          <TimeField label="From" value={from} onChange={(at) => onChange({ from: at, to })} />
          <TimeField label="To" value={to} onChange={(at) => onChange({ from, to: at })} />
        </>
      )}
    </>
  );
}

/** A time in the user's time zone; incomplete input is not reported, and stays as typed: 2 is the beginning of a year. */
function TimeField({ label, value, onChange }: { label: string; value: number; onChange: (at: number) => void }) {
  const [typed, setTyped] = useState<string>();
  return (
    <TextInput
      type="datetime-local"
      label={label}
      // Usage is summed by whole hours.
      step={3600}
      style={{ gridColumn: 'span 2' }}
      value={typed ?? localMinute(value)}
      onBlur={() => setTyped(undefined)}
      onChange={({ currentTarget }) => {
        setTyped(currentTarget.value);
        const at = new Date(currentTarget.value).getTime();
        if (at >= 0) onChange(at);
      }}
    />
  );
}

/** A choice among the values used in the period; for jobs of any time, in the longest period. */
function UsedValues({ label, by, of, scope, filters, onChange }: UsageFiltersProps & { label: string; by: UsedName }) {
  const { account, period = of === 'jobs' ? '90d' : usualPeriod } = filters;
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

/** `name:value` of the requests' metadata; applied once typing pauses. */
function TagField({ value, onChange }: { value: string; onChange: (value: string) => void }) {
  const [text, setText] = useState(value);
  const report = useDebouncedCallback((tag: string) => {
    if (tag === '' || /^[^:]+:.+/.test(tag)) onChange(tag);
  }, 400);
  useEffect(() => setText(value), [value]);
  const isHalf = text !== '' && !/^[^:]+:.+/.test(text);
  return (
    <TextInput
      label="Tag"
      placeholder="metadata, e.g. team:blue"
      aria-invalid={isHalf}
      title="A metadata tag of the requests, as name:value"
      value={text}
      onChange={({ currentTarget }) => {
        setText(currentTarget.value);
        report(currentTarget.value.trim());
      }}
    />
  );
}
