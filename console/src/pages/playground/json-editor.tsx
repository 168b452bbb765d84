import { Textarea } from '@mantine/core';

/** A field for JSON that immediately shows what is wrong with it. */
export function JsonEditor(props: {
  label: string;
  value: string;
  onChange: (value: string) => void;
  mistake: string | undefined;
}) {
  const { label, value, onChange, mistake } = props;
  return (
    <Textarea
      label={label}
      value={value}
      onChange={(event) => onChange(event.currentTarget.value)}
      error={mistake}
      autosize
      minRows={6}
      maxRows={18}
      spellCheck={false}
      styles={{
        input: { fontFamily: 'var(--mantine-font-family-monospace)', fontSize: 'var(--mantine-font-size-xs)' },
      }}
    />
  );
}
