import { TextInput, type TextInputProps } from '@mantine/core';
import { useLayoutEffect, useRef, useState } from 'react';
import { type AmountRange, amountText, readAmount } from '../format/amount.ts';

interface AmountFieldProps extends Omit<TextInputProps, 'value' | 'onChange' | 'onBlur' | 'onInvalid' | 'error'> {
  /** Where its numbers are declared: what is sent is read by the same. */
  readonly range: AmountRange;
  /** Before the number, such as `$`. */
  readonly prefix?: string;
  /** As typed; read by `amountOf`. */
  readonly value: string;
  readonly onChange: (text: string) => void;
}

/**
 * A field for a limit or an amount of money. It keeps what is typed, and shows, once it is left, how that is read: a field that
 * drops or turns signs while one types makes one dollar of `1,000`. A form with a number that cannot be read is not sent.
 */
export function AmountField({ range, prefix = '', value, onChange, ...field }: AmountFieldProps) {
  const input = useRef<HTMLInputElement>(null);
  const [isTyping, setIsTyping] = useState(false);
  const { value: number, problem } = readAmount(value, range);
  useLayoutEffect(() => input.current?.setCustomValidity(problem ?? ''), [problem]);
  return (
    <TextInput
      {...field}
      ref={input}
      inputMode={range.min === undefined ? 'text' : 'decimal'}
      autoComplete="off"
      maxLength={40}
      value={value}
      error={isTyping ? undefined : problem}
      onChange={(event) => {
        setIsTyping(true);
        onChange(event.currentTarget.value);
      }}
      onBlur={() => {
        setIsTyping(false);
        if (number !== undefined) onChange(signed(prefix, amountText(number, range.decimals)));
      }}
      onInvalid={() => setIsTyping(false)}
    />
  );
}

/** `-$5`, as amounts are written elsewhere. */
function signed(prefix: string, text: string): string {
  return text.startsWith('-') ? `-${prefix}${text.slice(1)}` : prefix + text;
}
