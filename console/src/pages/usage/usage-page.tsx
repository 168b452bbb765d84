import { getRouteApi } from '@tanstack/react-router';
import { UsageExplorer } from './usage-explorer.tsx';
import { ownScope } from './usage-scope.ts';

const route = getRouteApi('/shell/usage');

/** The account's usage. The address contains the whole view. */
export function UsagePage() {
  const navigate = route.useNavigate();
  return (
    <UsageExplorer
      title="Usage"
      description="Every request of this account, what it used and cost."
      scope={ownScope}
      search={route.useSearch()}
      onSearch={(search) => void navigate({ search, replace: true, resetScroll: false })}
    />
  );
}
