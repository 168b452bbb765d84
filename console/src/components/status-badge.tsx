import { Badge } from '@mantine/core';

/** Colours of the states of jobs, keys, accounts, vendors and workers; any other is gray. */
const colors: Record<string, string> = {
  active: 'green',
  completed: 'green',
  succeeded: 'green',
  healthy: 'green',
  closed: 'green',
  on: 'green',
  available: 'green',
  queued: 'blue',
  delayed: 'blue',
  in_progress: 'sluice',
  running: 'sluice',
  recovering: 'yellow',
  'keys cooling': 'yellow',
  'half-open': 'yellow',
  expired: 'yellow',
  rotated: 'yellow',
  failing: 'red',
  'key refused': 'red',
  'no worker': 'red',
  suspended: 'red',
  failed: 'red',
  revoked: 'red',
  open: 'red',
  incomplete: 'orange',
};

/** A state as text, not by its colour alone. */
export function StatusBadge({ status, color }: { status: string; color?: string }) {
  return (
    <Badge
      variant="light"
      color={color ?? colors[status] ?? 'gray'}
      fw={600}
      style={{ flexShrink: 0, minWidth: 'max-content' }}
    >
      {status.replaceAll('_', ' ')}
    </Badge>
  );
}
