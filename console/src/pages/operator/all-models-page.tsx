import { Text, UnstyledButton } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useMemo, useState } from 'react';
import { request } from '../../api/request.ts';
import { Card } from '../../components/card.tsx';
import { TableSkeleton } from '../../components/data-table.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { ErrorPanel } from '../../components/error-panel.tsx';
import { PageHeader } from '../../components/page-header.tsx';
import { ModelBrowser } from '../models/model-browser.tsx';
import { modelColumns } from '../models/model-columns.tsx';
import { ModelRoutes, type RoutedModel } from './model-routes.tsx';
import { OperatorsOnly } from './operators-only.tsx';

const route = getRouteApi('/shell/operator/models');
const path = '/admin/v1/models';

/** Every model of the catalogue with its routes, enabled or not, and its prices. */
export function AllModelsPage() {
  return (
    <OperatorsOnly>
      <PageHeader
        title="All models"
        description="Every model with its routes, on or off. Input and output in dollars per million tokens."
      />
      <Card>
        <AllModels />
      </Card>
    </OperatorsOnly>
  );
}

function AllModels() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const [shown, setShown] = useState<RoutedModel>();
  const answer = useQuery({
    queryKey: [path],
    queryFn: ({ signal }) => request<{ data: readonly Omit<RoutedModel, 'vendors'>[] }>('GET', path, { signal }),
    staleTime: 60_000,
  });
  const models = useMemo(() => answer.data?.data.map(withVendors), [answer.data]);
  if (answer.isError) return <ErrorPanel error={answer.error} onRetry={() => void answer.refetch()} />;
  if (models === undefined) return <TableSkeleton rows={10} />;
  return (
    <>
      <ModelBrowser
        models={models}
        search={search}
        onChange={(next) => void navigate({ search: next, replace: true, resetScroll: false })}
        columnsOf={(asked, sortBy) =>
          modelColumns<RoutedModel>(asked, sortBy, (model) => <RouteCount model={model} onShow={setShown} />)
        }
      />
      {shown !== undefined && (
        <Dialog onClose={() => setShown(undefined)} title={`Routes of ${shown.id}`} size="xl">
          <ModelRoutes model={shown} />
        </Dialog>
      )}
    </>
  );
}

function withVendors(model: Omit<RoutedModel, 'vendors'>): RoutedModel {
  return { ...model, vendors: [...new Set(model.routes.map(({ vendor }) => vendor))] };
}

function RouteCount({ model, onShow }: { model: RoutedModel; onShow: (model: RoutedModel) => void }) {
  const on = model.routes.filter((one) => one.on).length;
  return (
    <UnstyledButton fz="sm" c="var(--mantine-color-anchor)" onClick={() => onShow(model)}>
      <span className="visually-hidden">Routes of {model.id}: </span>
      {model.vendors.join(', ')}
      <Text size="xs" c="dimmed">
        {on} of {model.routes.length} on
      </Text>
    </UnstyledButton>
  );
}
