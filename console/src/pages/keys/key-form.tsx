import {
  Button,
  Chip,
  Fieldset,
  Group,
  Input,
  NativeSelect,
  SimpleGrid,
  Stack,
  TagsInput,
  TextInput,
} from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useRef, useState } from 'react';
import { allModelsQuery } from '../../api/models.ts';
import { AmountField } from '../../components/amount-field.tsx';
import { FormError } from '../../components/error-panel.tsx';
import { BehaviourFields } from './behaviour-fields.tsx';
import { budgetRange, type KeyFieldsProps, type KeyFormValues, limitRange } from './key-form-values.ts';
import { ModelLimits } from './model-limits.tsx';

/** All settings of a key. Empty fields mean no limit. */
export function KeyForm({
  initial,
  hasKinds = false,
  submitLabel,
  error,
  isPending,
  onTyped,
  onSubmit,
  onCancel,
}: {
  initial: KeyFormValues;
  /** Whether its kind can be chosen. */
  hasKinds?: boolean;
  submitLabel: string;
  error: unknown;
  isPending: boolean;
  /** Gets the values after each change. */
  onTyped?: (values: KeyFormValues) => void;
  onSubmit: (values: KeyFormValues) => void;
  onCancel: () => void;
}) {
  const [values, setValues] = useState(initial);
  // What is typed next need not wait for this to be drawn.
  const latest = useRef(initial);
  const onChange = (change: Partial<KeyFormValues>): void => {
    latest.current = { ...latest.current, ...change };
    setValues(latest.current);
    onTyped?.(latest.current);
  };
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        onSubmit(values);
      }}
    >
      <Stack gap="md">
        <TextInput
          label="Name"
          description="Says what the key is for."
          required
          maxLength={100}
          value={values.name}
          onChange={(event) => onChange({ name: event.currentTarget.value })}
          data-autofocus
        />
        {hasKinds && <KindField values={values} onChange={onChange} />}
        <ExpiryFields values={values} onChange={onChange} />
        <Part legend="What it may call">
          <ScopeFields values={values} onChange={onChange} />
        </Part>
        <Part legend="Limits">
          <LimitFields values={values} onChange={onChange} />
        </Part>
        <Part legend="Behaviour">
          <BehaviourFields values={values} onChange={onChange} />
        </Part>
        <Stack gap="xs" className="form-end">
          <FormError error={error} />
          <Group justify="flex-end" gap="xs">
            <Button variant="default" onClick={onCancel} disabled={isPending}>
              Cancel
            </Button>
            <Button type="submit" loading={isPending}>
              {submitLabel}
            </Button>
          </Group>
        </Stack>
      </Stack>
    </form>
  );
}

function Part({ legend, children }: { legend: string; children: ReactNode }) {
  return (
    <Fieldset legend={legend} variant="unstyled" styles={{ legend: { fontWeight: 600, marginBottom: 8 } }}>
      <Stack gap="sm">{children}</Stack>
    </Fieldset>
  );
}

function KindField({ values, onChange }: KeyFieldsProps) {
  return (
    <NativeSelect
      label="Kind"
      description="An operator key manages this whole gateway, and calls no model."
      value={values.kind}
      onChange={(event) => onChange({ kind: event.currentTarget.value as KeyFormValues['kind'] })}
      data={[
        { value: 'standard', label: 'Standard: calls models' },
        { value: 'operator', label: 'Operator: manages the gateway' },
      ]}
    />
  );
}

function ExpiryFields({ values, onChange }: KeyFieldsProps) {
  return (
    <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm">
      <NativeSelect
        label="Expires"
        value={values.expiry}
        onChange={(event) => onChange({ expiry: event.currentTarget.value })}
        data={[
          { value: 'never', label: 'Never' },
          { value: '1', label: 'In a day' },
          { value: '7', label: 'In 7 days' },
          { value: '30', label: 'In 30 days' },
          { value: '90', label: 'In 90 days' },
          { value: '365', label: 'In a year' },
          { value: 'date', label: 'On a day of choice' },
        ]}
      />
      {values.expiry === 'date' && (
        <TextInput
          label="Day and time"
          type="datetime-local"
          required
          value={values.expiresOn}
          onChange={(event) => onChange({ expiresOn: event.currentTarget.value })}
        />
      )}
    </SimpleGrid>
  );
}

const capabilityNames = [
  { value: 'chat', label: 'Chat' },
  { value: 'embedding', label: 'Embeddings' },
  { value: 'image', label: 'Images' },
  { value: 'transcription', label: 'Transcription' },
  { value: 'speech', label: 'Speech' },
  { value: 'video', label: 'Video' },
];

function ScopeFields({ values, onChange }: KeyFieldsProps) {
  const models = useQuery(allModelsQuery);
  return (
    <>
      <Input.Wrapper label="Capabilities" description="None chosen: all of them." labelElement="div">
        <Chip.Group multiple value={[...values.capabilities]} onChange={(capabilities) => onChange({ capabilities })}>
          <Group gap={6} mt={6}>
            {capabilityNames.map(({ value, label }) => (
              <Chip key={value} value={value} size="sm">
                {label}
              </Chip>
            ))}
          </Group>
        </Chip.Group>
      </Input.Wrapper>
      <TagsInput
        label="Models"
        description="Model ids; a star may end one, as in anthropic/*. None: all of them."
        data={models.data?.map(({ id }) => id) ?? []}
        limit={100}
        maxDropdownHeight={220}
        value={[...values.models]}
        onChange={(list) => onChange({ models: list })}
        clearable
        clearButtonProps={{ 'aria-label': 'Remove all models' }}
        acceptValueOnBlur
      />
    </>
  );
}

const limitProps = { range: limitRange, placeholder: 'No limit' };

function LimitFields({ values, onChange }: KeyFieldsProps) {
  return (
    <>
      <SimpleGrid cols={{ base: 1, xs: 3 }} spacing="sm">
        <AmountField
          label="Requests per minute"
          {...limitProps}
          value={values.rpm}
          onChange={(rpm) => onChange({ rpm })}
        />
        <AmountField
          label="Tokens per minute"
          {...limitProps}
          value={values.tpm}
          onChange={(tpm) => onChange({ tpm })}
        />
        <AmountField
          label="Requests at once"
          {...limitProps}
          value={values.concurrency}
          onChange={(concurrency) => onChange({ concurrency })}
        />
        <AmountField
          label="Budget"
          placeholder="No limit"
          prefix="$"
          range={budgetRange}
          value={values.budget}
          onChange={(budget) => onChange({ budget })}
        />
        <NativeSelect
          label="Budget begins anew"
          disabled={values.budget === ''}
          value={values.budgetPeriod}
          onChange={(event) => onChange({ budgetPeriod: event.currentTarget.value as KeyFormValues['budgetPeriod'] })}
          data={[
            { value: 'day', label: 'Every day' },
            { value: 'week', label: 'Every week' },
            { value: 'month', label: 'Every month' },
            { value: 'never', label: 'Never' },
          ]}
        />
      </SimpleGrid>
      <ModelLimits lines={values.modelLimits} onChange={(modelLimits) => onChange({ modelLimits })} />
    </>
  );
}
