import { NumberInput } from '@mantine/core';

/** An optional number; left out, the vendor's default applies. */
export function NumberField(props: {
  label: string;
  value: number | '';
  onChange: (value: number | '') => void;
  min: number;
  max?: number;
  step?: number;
  isWhole?: boolean;
}) {
  const { label, value, onChange, min, max, step = 1, isWhole = false } = props;
  return (
    <NumberInput
      label={label}
      placeholder="usual"
      value={value}
      onChange={(next) => onChange(typeof next === 'number' ? next : '')}
      min={min}
      {...(max !== undefined && { max })}
      step={step}
      allowDecimal={!isWhole}
    />
  );
}
