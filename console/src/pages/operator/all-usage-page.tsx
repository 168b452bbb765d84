import { getRouteApi } from '@tanstack/react-router';
import { UsageExplorer } from '../usage/usage-explorer.tsx';
import { operatorScope } from '../usage/usage-scope.ts';
import { OperatorsOnly } from './operators-only.tsx';

const route = getRouteApi('/shell/operator/usage');

/** Usage of all accounts together, or one of them. */
export function AllUsagePage() {
  const navigate = route.useNavigate();
  const search = route.useSearch();
  return (
    <OperatorsOnly>
      <UsageExplorer
        title="All usage"
        description="Every request of every account, what it used and cost."
        scope={operatorScope}
        search={search}
        onSearch={(next) => void navigate({ search: next, replace: true, resetScroll: false })}
      />
    </OperatorsOnly>
  );
}
