import { useQuery } from '@tanstack/react-query';
import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { allModelsQuery, modelsQuery } from '../../api/models.ts';
import { Card } from '../../components/card.tsx';
import { TableSkeleton } from '../../components/data-table.tsx';
import { ErrorPanel } from '../../components/error-panel.tsx';
import { PageHeader } from '../../components/page-header.tsx';
import { ModelBrowser } from './model-browser.tsx';
import { modelColumns } from './model-columns.tsx';
import type { ModelsSearch } from './models-search.ts';

const route = getRouteApi('/shell/models/');

/** The available models with their prices; on request every model of the catalogue, unavailable ones in gray. */
export function ModelsPage() {
  const search = route.useSearch();
  const navigate = useNavigate();
  const models = useQuery({
    ...(search.available === false ? allModelsQuery : modelsQuery),
    placeholderData: (before) => before,
  });
  const change = (next: ModelsSearch): void => void navigate({ to: '/models', search: next, replace: true });
  return (
    <>
      <PageHeader
        title="Models and prices"
        description="Prices per million tokens unless noted. Choose a model for its limits, prices and a code sample."
      />
      <Card>
        {models.isPending && <TableSkeleton rows={10} />}
        {models.isError && <ErrorPanel error={models.error} onRetry={() => void models.refetch()} />}
        {models.data !== undefined && (
          <ModelBrowser
            models={models.data}
            search={search}
            hidesOthers
            onChange={change}
            columnsOf={(asked, sortBy) => modelColumns(asked, sortBy)}
          />
        )}
      </Card>
    </>
  );
}
