import { Grid, Stack } from '@mantine/core';
import type { Icon } from '@tabler/icons-react';
import type { ReactNode } from 'react';
import { Card } from '../../../components/card.tsx';
import { EmptyState } from '../../../components/empty-state.tsx';
import { useStore } from '../state-store.ts';
import { TaskCard } from './task-card.tsx';
import type { TaskSession } from './task-session.ts';

interface TaskLayoutProps<Form extends object, Result> {
  readonly session: TaskSession<Form, Result>;
  /** The form, beside the results. */
  readonly form: ReactNode;
  readonly icon: Icon;
  readonly emptyTitle: string;
  readonly emptyText: string;
  /** Shows one result. */
  readonly children: (result: Result) => ReactNode;
}

/** A form, and its results. */
export function TaskLayout<Form extends object, Result>(props: TaskLayoutProps<Form, Result>) {
  const { session, form, icon, emptyTitle, emptyText, children } = props;
  const { tasks } = useStore(session.store);
  return (
    <Grid gap="md" align="flex-start">
      <Grid.Col span={{ base: 12, md: 4 }}>
        <Card title="Request">{form}</Card>
      </Grid.Col>
      <Grid.Col span={{ base: 12, md: 8 }}>
        <Card title="Results">
          {tasks.length === 0 && (
            <EmptyState title={emptyTitle} icon={icon}>
              {emptyText}
            </EmptyState>
          )}
          <Stack gap="sm">
            {tasks.map((task) => (
              <TaskCard key={task.id} task={task} onRemove={session.remove}>
                {children}
              </TaskCard>
            ))}
          </Stack>
        </Card>
      </Grid.Col>
    </Grid>
  );
}
