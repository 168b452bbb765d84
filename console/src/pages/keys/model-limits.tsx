import { ActionIcon, Box, Button, Group, Stack, TextInput } from '@mantine/core';
import { IconPlus, IconTrash } from '@tabler/icons-react';
import { AmountField } from '../../components/amount-field.tsx';
import { limitRange, type ModelLimit } from './key-form-values.ts';

const limitProps = { range: limitRange, placeholder: 'No limit' };

/** Limits of single models, one line each. */
export function ModelLimits({
  lines,
  onChange,
}: {
  lines: readonly ModelLimit[];
  onChange: (lines: readonly ModelLimit[]) => void;
}) {
  const change = (line: number, part: Partial<ModelLimit>): void =>
    onChange(lines.map((one) => (one.line === line ? { ...one, ...part } : one)));
  const add = (): void => {
    const line = Math.max(-1, ...lines.map((one) => one.line)) + 1;
    onChange([...lines, { line, model: '', rpm: '', tpm: '' }]);
  };
  return (
    <Stack gap="xs">
      {lines.map(({ line, model, rpm, tpm }) => (
        <Group key={line} gap="xs" align="flex-end" wrap="wrap">
          <TextInput
            label="Model"
            value={model}
            required
            flex="2 1 10rem"
            onChange={(event) => change(line, { model: event.currentTarget.value })}
          />
          <AmountField
            label="Requests/min"
            {...limitProps}
            flex="1 1 6rem"
            value={rpm}
            onChange={(value) => change(line, { rpm: value })}
          />
          <AmountField
            label="Tokens/min"
            {...limitProps}
            flex="1 1 6rem"
            value={tpm}
            onChange={(value) => change(line, { tpm: value })}
          />
          <ActionIcon
            variant="default"
            size={36}
            aria-label={`Remove the limits of ${model === '' ? 'this model' : model}`}
            onClick={() => onChange(lines.filter((one) => one.line !== line))}
          >
            <IconTrash size={16} aria-hidden />
          </ActionIcon>
        </Group>
      ))}
      <Box>
        <Button variant="subtle" size="compact-sm" leftSection={<IconPlus size={14} aria-hidden />} onClick={add}>
          Limit a single model
        </Button>
      </Box>
    </Stack>
  );
}
