import { Select } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useEffect } from 'react';
import { type Model, modelsQuery } from '../../api/models.ts';

/** A longer name does not fit into the field on a phone. */
const maxLetters = 36;
/** Maximum number of options shown at once; typing narrows them down. */
const maxShown = 100;

/** Whether a model is available for requests to a path. */
function isOffered(model: Model, path: string): boolean {
  return model.available && model.paths.includes(path);
}

/** A choice among the available models of a path; selects the first one by default. */
export function ModelPicker(props: { path: string; value: string; onChange: (model: string) => void }) {
  const { path, value, onChange } = props;
  const models = useQuery(modelsQuery);
  const offered = (models.data ?? []).filter((model) => isOffered(model, path));
  const first = offered[0]?.id;
  // The model stored for a reload may be gone since.
  const isChosen = models.data === undefined || offered.some(({ id }) => id === value);
  useEffect(() => {
    if (!isChosen && first !== undefined) onChange(first);
  }, [isChosen, first, onChange]);
  return (
    <Select
      label="Model"
      searchable
      allowDeselect={false}
      limit={maxShown}
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
      description={value.length > maxLetters && <span style={{ overflowWrap: 'anywhere' }}>{value}</span>}
    />
  );
}
