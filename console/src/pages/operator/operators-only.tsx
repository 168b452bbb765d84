import { IconLock } from '@tabler/icons-react';
import type { ReactNode } from 'react';
import { useSession } from '../../api/session.ts';
import { EmptyState } from '../../components/empty-state.tsx';

/** Shows its content to operators, and a message to others (the server refuses them anyway). */
export function OperatorsOnly({ children }: { children: ReactNode }) {
  if (useSession().user.role === 'operator') return children;
  return (
    <EmptyState title="This page is for operators" icon={IconLock}>
      Ask an operator of this gateway to make you one, or to do for you what you came for.
    </EmptyState>
  );
}
