import { Button, Checkbox, Group, Select, TextInput } from '@mantine/core';
import { IconSearch } from '@tabler/icons-react';
import { useEffect, useMemo, useState } from 'react';
import type { Model } from '../../api/models.ts';
import { type ModelOrder, type ModelsSearch, modelOrders } from './models-search.ts';

const contexts = [
  { value: '8000', label: '8K or more' },
  { value: '32000', label: '32K or more' },
  { value: '128000', label: '128K or more' },
  { value: '200000', label: '200K or more' },
  { value: '1000000', label: '1M or more' },
];

interface ModelFiltersProps {
  readonly models: readonly Model[];
  readonly search: ModelsSearch;
  /** Whether unavailable models are hidden by default. */
  readonly hidesOthers: boolean;
  readonly onChange: (search: ModelsSearch) => void;
}

/** Filters the price list. */
export function ModelFilters({ models, search, hidesOthers, onChange }: ModelFiltersProps) {
  const vendors = useMemo(() => [...new Set(models.flatMap((model) => model.vendors))].sort(), [models]);
  const capabilities = useMemo(() => [...new Set(models.map((model) => model.capability))].sort(), [models]);
  const set = (name: keyof ModelsSearch, value: string | number | boolean | undefined | null): void => {
    const { [name]: _, ...rest } = search;
    onChange(value === undefined || value === null || value === '' ? rest : { ...rest, [name]: value });
  };
  const [text, setText] = useTyped(search.search ?? '', (typed) => set('search', typed));
  const width = { base: '100%', xs: 160 };
  const clear = (label: string) => ({ clearable: true, clearButtonProps: { 'aria-label': `Clear ${label}` } });
  return (
    <Group align="flex-end" gap="sm" mb="md">
      <TextInput
        label="Search"
        placeholder="Name, maker or vendor"
        leftSection={<IconSearch size={16} aria-hidden />}
        value={text}
        onChange={(event) => setText(event.currentTarget.value)}
        flex={1}
        miw={200}
      />
      <Select
        label="Vendor"
        placeholder="all"
        searchable
        {...clear('vendor')}
        data={vendors}
        value={search.vendor ?? null}
        onChange={(vendor) => set('vendor', vendor)}
        w={width}
      />
      <Select
        label="Kind"
        placeholder="all"
        {...clear('kind')}
        data={capabilities}
        value={search.capability ?? null}
        onChange={(capability) => set('capability', capability)}
        w={width}
      />
      <Select
        label="Context"
        placeholder="any"
        {...clear('context')}
        data={contexts}
        value={search.context === undefined ? null : String(search.context)}
        onChange={(context) => set('context', context === null ? undefined : Number(context))}
        w={width}
      />
      {/* A phone has no column headers to click. */}
      <Select
        hiddenFrom="sm"
        label="Order by"
        allowDeselect={false}
        data={[...modelOrders]}
        value={search.order ?? 'model'}
        onChange={(order) => set('order', order as ModelOrder)}
        w="100%"
      />
      <Checkbox
        label="Available only"
        checked={search.available ?? hidesOthers}
        onChange={({ currentTarget: { checked } }) => set('available', checked === hidesOthers ? undefined : checked)}
        my={8}
      />
      {Object.keys(search).length > 0 && (
        <Button variant="default" onClick={() => onChange({})}>
          Clear filters
        </Button>
      )}
    </Group>
  );
}

/** A text of the address, which follows a moment after what is typed: until then a field shows that, and loses no letter. */
function useTyped(value: string, onChange: (text: string) => void): [text: string, setText: (text: string) => void] {
  const [typed, setTyped] = useState<string>();
  useEffect(() => {
    if (typed === value) setTyped(undefined);
  }, [typed, value]);
  const setText = (text: string): void => {
    setTyped(text);
    onChange(text);
  };
  return [typed ?? value, setText];
}
