import { Box, Button, Center, Group, Stack, Text } from '@mantine/core';
import { IconSearchOff } from '@tabler/icons-react';
import { useDeferredValue, useMemo, useState } from 'react';
import type { Model } from '../../api/models.ts';
import { type Column, DataTable } from '../../components/data-table.tsx';
import { EmptyState } from '../../components/empty-state.tsx';
import { listModels } from './list-models.ts';
import { ModelFilters } from './model-filters.tsx';
import type { ModelOrder, ModelsSearch } from './models-search.ts';

/** Number of rows shown at once. */
const pageSize = 50;

/** Models to search, filter and sort; the state is in the address. */
export function ModelBrowser<Listed extends Model>({
  models,
  search,
  hidesOthers = false,
  onChange,
  columnsOf,
}: {
  models: readonly Listed[];
  search: ModelsSearch;
  /** Whether unavailable models are hidden by default. */
  hidesOthers?: boolean;
  onChange: (search: ModelsSearch) => void;
  columnsOf: (search: ModelsSearch, sortBy: (order: ModelOrder) => void) => readonly Column<Listed>[];
}) {
  const [pages, setPages] = useState(1);
  // Typing takes precedence over listing.
  const deferred = useDeferredValue(search);
  const isOfAvailable = deferred.available ?? hidesOthers;
  const found = useMemo(
    () => listModels(models, { ...deferred, available: isOfAvailable }),
    [models, deferred, isOfAvailable],
  );
  const showAll = (): void => onChange({ ...search, available: false });
  const sortBy = (order: ModelOrder): void => {
    const isFalling = (search.order ?? 'model') === order && search.falling !== true;
    const { falling: _, ...rest } = search;
    onChange({ ...rest, order, ...(isFalling && { falling: true }) });
  };
  const shown = found.slice(0, pages * pageSize);
  return (
    <>
      <ModelFilters models={models} search={search} hidesOthers={hidesOthers} onChange={onChange} />
      {found.length === 0 ? (
        <EmptyState title={isOfAvailable ? 'No available model matches' : 'No model matches'} icon={IconSearchOff}>
          <Group gap="xs" justify="center">
            {isOfAvailable && (
              <Button variant="default" onClick={showAll}>
                Show models that are not available
              </Button>
            )}
            <Button variant="default" onClick={() => onChange({})}>
              Clear filters
            </Button>
          </Group>
        </EmptyState>
      ) : (
        <Stack gap="sm">
          <Text size="sm" c="dimmed" role="status" className="numbers">
            {isOfAvailable ? `${found.length} available models` : `${found.length} of ${models.length} models`}
          </Text>
          <Box>
            <DataTable label="Models" columns={columnsOf(search, sortBy)} rows={shown} rowKey={({ id }) => id} />
          </Box>
          {shown.length < found.length && (
            <Center>
              <Button variant="default" onClick={() => setPages(pages + 1)}>
                Show {Math.min(pageSize, found.length - shown.length)} more
              </Button>
            </Center>
          )}
        </Stack>
      )}
    </>
  );
}
