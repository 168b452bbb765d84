import { Autocomplete, Textarea } from '@mantine/core';

interface FieldProps {
  readonly value: string;
  readonly onChange: (value: string) => void;
}

/** The text to generate from, in a field of several lines. */
export function WordsField({
  label,
  placeholder,
  maxLength,
  value,
  onChange,
}: FieldProps & { label: string; placeholder: string; maxLength?: number }) {
  return (
    <Textarea
      label={label}
      placeholder={placeholder}
      value={value}
      onChange={(event) => onChange(event.currentTarget.value)}
      autosize
      minRows={3}
      maxRows={10}
      {...(maxLength !== undefined && { maxLength })}
    />
  );
}

/** The size of a picture or a video. */
export function SizeField({ sizes, value, onChange }: FieldProps & { sizes: readonly string[] }) {
  return (
    <Autocomplete
      label="Size"
      description="Width x height; empty: as is usual for the model"
      data={[...sizes]}
      value={value}
      onChange={onChange}
    />
  );
}

/** Optional instructions for a model, in a few words. */
export function HintField({
  label,
  description,
  value,
  onChange,
}: FieldProps & { label: string; description: string }) {
  return (
    <Textarea
      label={label}
      description={description}
      value={value}
      onChange={(event) => onChange(event.currentTarget.value)}
      autosize
      minRows={1}
      maxRows={4}
    />
  );
}
