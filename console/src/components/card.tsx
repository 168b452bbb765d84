import { Group, Paper, Title } from '@mantine/core';
import type { ReactNode } from 'react';

/** A section of a page with its own background and a second-level heading. */
export function Card({ title, actions, children }: { title?: string; actions?: ReactNode; children: ReactNode }) {
  return (
    <Paper component="section" withBorder p={{ base: 'sm', sm: 'md' }} bg="var(--sluice-card)" miw={0}>
      {title !== undefined && (
        <Group justify="space-between" mb="sm" gap="xs">
          <Title order={2}>{title}</Title>
          {actions}
        </Group>
      )}
      {children}
    </Paper>
  );
}
