import { Stack, Text, ThemeIcon } from '@mantine/core';
import { type Icon, IconInbox } from '@tabler/icons-react';
import type { ReactNode } from 'react';

/** Placeholder for missing content: explains what belongs here, and (`children`) what to do next. */
export function EmptyState({
  title,
  children,
  icon: Shown = IconInbox,
}: {
  title: string;
  children?: ReactNode;
  icon?: Icon;
}) {
  return (
    <Stack align="center" gap="xs" py="xl" px="md" ta="center">
      <ThemeIcon variant="light" size={48} radius="xl" aria-hidden>
        <Shown size={26} stroke={1.6} />
      </ThemeIcon>
      <Text fw={600}>{title}</Text>
      {children !== undefined && (
        <Stack align="center" gap="sm" c="dimmed" fz="sm" maw="34rem">
          {children}
        </Stack>
      )}
    </Stack>
  );
}
