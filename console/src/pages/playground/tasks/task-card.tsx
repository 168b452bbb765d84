import { ActionIcon, Alert, Badge, Group, Loader, Paper, Progress, Stack, Text } from '@mantine/core';
import { IconAlertCircle, IconTrash } from '@tabler/icons-react';
import type { ReactNode } from 'react';
import { fromNow } from '../../../format/time.ts';
import { JobCost } from '../job-cost.tsx';
import type { Task } from './task-session.ts';

interface TaskCardProps<Result> {
  readonly task: Task<Result>;
  readonly onRemove: (id: number) => void;
  /** Shows the result. */
  readonly children: (result: Result) => ReactNode;
}

/** One task: its title, progress and result. */
export function TaskCard<Result>({ task, onRemove, children }: TaskCardProps<Result>) {
  const isRunning = task.state === 'running';
  return (
    <Paper withBorder p="sm" component="article" aria-busy={isRunning} data-testid="task" data-state={task.state}>
      <Group justify="space-between" wrap="nowrap" align="flex-start" mb="xs">
        <Stack gap={0} miw={0}>
          <Text fw={600} lineClamp={2} className="said">
            {task.title}
          </Text>
          <Text size="xs" c="dimmed">
            {task.model} · {fromNow(task.startedAt)}
          </Text>
        </Stack>
        <ActionIcon
          variant="subtle"
          color="gray"
          aria-label={isRunning ? 'Stop and remove' : 'Remove'}
          onClick={() => onRemove(task.id)}
        >
          <IconTrash size={18} aria-hidden />
        </ActionIcon>
      </Group>
      <Stack gap="xs">
        {isRunning && <TaskProgress progress={task.progress} />}
        {task.state === 'stopped' && <Badge color="gray">stopped</Badge>}
        {task.error !== undefined && (
          <Alert color="red" variant="light" icon={<IconAlertCircle aria-hidden />} title="It failed" role="alert">
            {task.error}
          </Alert>
        )}
        {task.result !== undefined && children(task.result)}
        {!isRunning && <JobCost requestId={task.jobId} />}
      </Stack>
    </Paper>
  );
}

function TaskProgress({ progress }: { progress: number | undefined }) {
  if (progress === undefined) {
    return (
      <Group gap="xs" role="status">
        <Loader size="sm" />
        <Text size="sm" c="dimmed">
          Working …
        </Text>
      </Group>
    );
  }
  const percent = Math.round(progress * 100);
  return (
    <Group gap="sm" wrap="nowrap">
      <Progress.Root size="lg" flex={1}>
        <Progress.Section value={percent} animated aria-label="How far the work is" />
      </Progress.Root>
      <Text size="sm" className="numbers" role="status">
        {percent} %
      </Text>
    </Group>
  );
}
