import { Select } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useEffect } from 'react';
import { type Model, modelsQuery } from '../../api/models.ts';

/** Shown at once: what is typed narrows them down. */
const mostShown = 100;

/** Whether a model is offered where this is to be done. `chat` leaves out those that only complete texts. */
function isOffered(model: Model, capability: string): boolean {
  return model.available && model.capability === capability;
}

/** Chooses among the models of a capability that can be used now; the first, until one is chosen. */
export function ModelPicker(props: { capability: string; value: string; onChange: (model: string) => void }) {
  const { capability, value, onChange } = props;
  const models = useQuery(modelsQuery);
  const offered = (models.data ?? []).filter((model) => isOffered(model, capability));
  const first = offered[0]?.id;
  useEffect(() => {
    if (value === '' && first !== undefined) onChange(first);
  }, [value, first, onChange]);
  return (
    <Select
      label="Model"
      searchable
      allowDeselect={false}
      limit={mostShown}
      data={offered.map(({ id }) => id)}
      value={value === '' ? null : value}
      onChange={(chosen) => onChange(chosen ?? '')}
      disabled={models.isPending}
      placeholder={models.isPending ? 'Reading the models …' : 'Search models'}
      nothingFoundMessage="No model is called that. Only models that can be used now are listed."
      error={
        models.isError
          ? models.error.message
          : !models.isPending &&
            offered.length === 0 &&
            'No model of this kind can be used now. An operator can turn a vendor on.'
      }
      maxDropdownHeight={320}
    />
  );
}
