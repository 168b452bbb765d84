import { TextInput } from '@mantine/core';
import { IconSearch } from '@tabler/icons-react';

/** A field that searches the list below it. */
export function SearchInput(props: {
  label: string;
  placeholder: string;
  value: string;
  onChange: (text: string) => void;
}) {
  return (
    <TextInput
      aria-label={props.label}
      placeholder={props.placeholder}
      leftSection={<IconSearch size={16} aria-hidden />}
      value={props.value}
      maxLength={200}
      onChange={(event) => props.onChange(event.currentTarget.value)}
      maw={360}
    />
  );
}
