import { NativeSelect, SimpleGrid } from '@mantine/core';
import { AmountField } from '../../components/amount-field.tsx';
import { cacheRange, type KeyFieldsProps } from './key-form-values.ts';

const priorities = [
  { value: '', label: 'Normal' },
  { value: 'low', label: 'Low' },
  { value: 'high', label: 'High' },
];

function PriorityFields({ values, onChange }: KeyFieldsProps) {
  return (
    <>
      <NativeSelect
        label="Priority"
        description="Of requests that choose none: low waits for spare capacity, high precedes others"
        value={values.priority}
        onChange={(event) => onChange({ priority: event.currentTarget.value })}
        data={priorities}
      />
      <NativeSelect
        label="Highest priority"
        description="High takes effect once an operator allows it to the account"
        value={values.maxPriority}
        onChange={(event) => onChange({ maxPriority: event.currentTarget.value })}
        data={priorities}
      />
    </>
  );
}

/** What the gateway does with requests of the key, beyond their limits. */
export function BehaviourFields({ values, onChange }: KeyFieldsProps) {
  return (
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
      <AmountField
        label="Answers from the cache, seconds"
        description="An identical request gets an answer of up to this age, at no cost"
        placeholder="No cache"
        range={cacheRange}
        value={values.cacheSeconds}
        onChange={(cacheSeconds) => onChange({ cacheSeconds })}
      />
    </SimpleGrid>
  );
}
