import { Button, Group, Select, TextInput } from '@mantine/core';
import { useDebouncedCallback } from '@mantine/hooks';
import { useEffect, useState } from 'react';
import type { JobListSearch } from './job-list-search.ts';

const statuses = ['completed', 'failed', 'cancelled', 'unfinished'];

const endpoints = [
  'chat',
  'completions',
  'responses',
  'responses.ws',
  'messages',
  'messages.count_tokens',
  'embeddings',
  'images.generations',
  'images.edits',
  'images.variations',
  'audio.transcriptions',
  'audio.translations',
  'audio.speech',
  'videos',
  'videos.remix',
];

interface JobFiltersProps {
  readonly search: JobListSearch;
  readonly onChange: (search: JobListSearch) => void;
  /** Ids and names; undefined: there is no such filter. */
  readonly keys?: readonly { readonly id: string; readonly name: string }[];
  readonly accounts?: readonly { readonly id: string; readonly name: string }[];
}

/** Narrows a list of jobs down. */
export function JobFilters({ search, onChange, keys, accounts }: JobFiltersProps) {
  const set = (name: keyof JobListSearch, value: string | null): void => {
    const { [name]: _, ...rest } = search;
    onChange(value === null || value === '' ? rest : { ...rest, [name]: value });
  };
  const choice = (
    name: keyof JobListSearch,
    label: string,
    data: readonly (string | { value: string; label: string })[],
  ) => (
    <Select
      label={label}
      placeholder="all"
      clearable
      searchable
      clearButtonProps={{ 'aria-label': `Clear ${label.toLowerCase()}` }}
      data={[...data]}
      value={search[name] ?? null}
      onChange={(value) => set(name, value)}
      w={{ base: '100%', xs: 150 }}
    />
  );
  const named = (rows: readonly { id: string; name: string }[]) =>
    rows.map(({ id, name }) => ({ value: id, label: name }));
  return (
    <Group align="flex-end" gap="sm" mb="md">
      {accounts !== undefined && choice('account', 'Account', named(accounts))}
      {choice('status', 'Status', statuses)}
      <ModelField value={search.model ?? ''} onChange={(model) => set('model', model)} />
      {keys !== undefined && choice('key', 'Key', named(keys))}
      {choice('endpoint', 'Endpoint', endpoints)}
      <DayField label="From" value={search.from} onChange={(day) => set('from', day)} />
      <DayField label="To" value={search.to} onChange={(day) => set('to', day)} />
      {Object.keys(search).length > 0 && (
        <Button variant="default" onClick={() => onChange({})}>
          Clear filters
        </Button>
      )}
    </Group>
  );
}

/** Typing does not ask anew with every letter. */
function ModelField({ value, onChange }: { value: string; onChange: (value: string) => void }) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  const tell = useDebouncedCallback(onChange, 400);
  return (
    <TextInput
      label="Model"
      placeholder="its whole id"
      value={text}
      onChange={(event) => {
        setText(event.currentTarget.value);
        tell(event.currentTarget.value.trim());
      }}
      w={{ base: '100%', xs: 160 }}
    />
  );
}

function DayField(props: { label: string; value: string | undefined; onChange: (value: string) => void }) {
  const { label, value = '', onChange } = props;
  return (
    <TextInput
      type="date"
      label={label}
      value={value}
      onChange={(event) => onChange(event.currentTarget.value)}
      w={{ base: 'calc(50% - var(--mantine-spacing-sm) / 2)', xs: 140 }}
    />
  );
}
