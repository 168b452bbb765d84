import {
  Button,
  Chip,
  Fieldset,
  Group,
  Input,
  NativeSelect,
  NumberInput,
  SimpleGrid,
  Stack,
  TagsInput,
  TextInput,
} from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { allModelsQuery } from '../../api/models.ts';
import { FormError } from '../../components/error-panel.tsx';
import type { KeyFormValues } from './key-form-values.ts';
import { ModelLimits } from './model-limits.tsx';

interface FieldsProps {
  readonly values: KeyFormValues;
  readonly onChange: (change: Partial<KeyFormValues>) => void;
}

/** All settings of a key. Empty fields mean no limit. */
export function KeyForm({
  initial,
  hasKinds = false,
  submitLabel,
  error,
  isPending,
  onSubmit,
  onCancel,
}: {
  initial: KeyFormValues;
  /** Whether its kind can be chosen. */
  hasKinds?: boolean;
  submitLabel: string;
  error: unknown;
  isPending: boolean;
  onSubmit: (values: KeyFormValues) => void;
  onCancel: () => void;
}) {
  const [values, setValues] = useState(initial);
  const onChange = (change: Partial<KeyFormValues>): void => setValues((before) => ({ ...before, ...change }));
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
        <ScopeFields values={values} onChange={onChange} />
        <LimitFields values={values} onChange={onChange} />
        <BehaviourFields values={values} onChange={onChange} />
        <Stack gap="xs" className="form-end">
          <FormError error={error} />
          <Group justify="flex-end" gap="xs">
            <Button variant="default" onClick={onCancel}>
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

function KindField({ values, onChange }: FieldsProps) {
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

function ExpiryFields({ values, onChange }: FieldsProps) {
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

function ScopeFields({ values, onChange }: FieldsProps) {
  const models = useQuery(allModelsQuery);
  return (
    <Part legend="What it may call">
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
    </Part>
  );
}

const limitProps = {
  min: 1,
  allowDecimal: false,
  allowNegative: false,
  thousandSeparator: ',',
  placeholder: 'No limit',
};

function LimitFields({ values, onChange }: FieldsProps) {
  return (
    <Part legend="Limits">
      <SimpleGrid cols={{ base: 1, xs: 3 }} spacing="sm">
        <NumberInput
          label="Requests per minute"
          {...limitProps}
          value={values.rpm}
          onChange={(rpm) => onChange({ rpm })}
        />
        <NumberInput
          label="Tokens per minute"
          {...limitProps}
          value={values.tpm}
          onChange={(tpm) => onChange({ tpm })}
        />
        <NumberInput
          label="Requests at once"
          {...limitProps}
          value={values.concurrency}
          onChange={(concurrency) => onChange({ concurrency })}
        />
        <NumberInput
          label="Budget"
          placeholder="No limit"
          prefix="$"
          min={0}
          max={1_000_000}
          allowNegative={false}
          decimalScale={6}
          thousandSeparator=","
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
    </Part>
  );
}

function PriorityFields({ values, onChange }: FieldsProps) {
  return (
    <>
      <NativeSelect
        label="Priority"
        description="Of requests that choose none: low waits for spare capacity, high precedes others"
        value={values.priority}
        onChange={(event) => onChange({ priority: event.currentTarget.value })}
        data={[
          { value: '', label: 'Normal' },
          { value: 'low', label: 'Low' },
          { value: 'high', label: 'High' },
        ]}
      />
      <NativeSelect
        label="Highest priority"
        description="High takes effect once an operator allows it to the account"
        value={values.maxPriority}
        onChange={(event) => onChange({ maxPriority: event.currentTarget.value })}
        data={[
          { value: '', label: 'Normal' },
          { value: 'low', label: 'Low' },
          { value: 'high', label: 'High' },
        ]}
      />
    </>
  );
}

function BehaviourFields({ values, onChange }: FieldsProps) {
  return (
    <Part legend="Behaviour">
      <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm">
        <NativeSelect
          label="When the client goes away"
          value={values.onDisconnect}
          onChange={(event) => onChange({ onDisconnect: event.currentTarget.value })}
          data={[
            { value: '', label: 'As the gateway has it' },
            { value: 'cancel', label: 'Cancel the request' },
            { value: 'continue', label: 'Finish it; it can be resumed' },
          ]}
        />
        <NativeSelect
          label="Parameters a vendor lacks"
          value={values.unsupportedParameters}
          onChange={(event) => onChange({ unsupportedParameters: event.currentTarget.value })}
          data={[
            { value: '', label: 'As the gateway has it' },
            { value: 'refuse', label: 'Refuse the request' },
            { value: 'drop', label: 'Leave them out' },
          ]}
        />
        <NativeSelect
          label="Prompt cache of Claude"
          description="A cache write costs more than plain input, a cache read far less"
          value={values.cacheBreakpoints}
          onChange={(event) => onChange({ cacheBreakpoints: event.currentTarget.value })}
          data={[
            { value: '', label: 'As the client marks it' },
            { value: 'automatic', label: 'Add breakpoints if it has none' },
          ]}
        />
        <PriorityFields values={values} onChange={onChange} />
        <NativeSelect
          label="Identical requests at once"
          description="They get one answer, which is charged once"
          value={values.singleFlight}
          onChange={(event) => onChange({ singleFlight: event.currentTarget.value })}
          data={[
            { value: '', label: 'One call of a vendor each' },
            { value: 'on', label: 'Share one call of a vendor' },
          ]}
        />
      </SimpleGrid>
    </Part>
  );
}
