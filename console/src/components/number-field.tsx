import { NumberInput, type NumberInputProps } from '@mantine/core';
import { useState } from 'react';

interface NumberFieldProps extends Omit<NumberInputProps, 'value' | 'defaultValue' | 'onChange'> {
  readonly value: number | '';
  /** Receives '' for what is not a number. */
  readonly onChange: (value: number | '') => void;
}

/**
 * A field for a number. What is half typed (`0.`, `-`, `1.0`) stays in it as typed: put back as a number, or emptied, the next
 * digit would make another number, such as 50 of `1.50`.
 */
export function NumberField({ value, onChange, ...field }: NumberFieldProps) {
  const [text, setText] = useState<number | string>(value);
  return (
    <NumberInput
      {...field}
      // A value that was set elsewhere replaces what was typed.
      value={numberOf(text) === value ? text : value}
      onChange={(next) => {
        setText(next);
        onChange(numberOf(next));
      }}
    />
  );
}

function numberOf(text: number | string): number | '' {
  const number = text === '' ? Number.NaN : Number(text);
  return Number.isFinite(number) ? number : '';
}
