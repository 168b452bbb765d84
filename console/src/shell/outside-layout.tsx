import { Box, Group, Paper, Stack, Text, Title } from '@mantine/core';
import { type ReactNode, useEffect } from 'react';
import { Brand } from './brand.tsx';
import { ColorSchemeSwitch } from './color-scheme-switch.tsx';

/** Layout of the pages before sign-in: one card with a form. */
export function OutsideLayout({
  title,
  description,
  children,
  footer,
}: {
  title: string;
  description?: ReactNode;
  children: ReactNode;
  footer?: ReactNode;
}) {
  useEffect(() => {
    document.title = `${title} · Sluice`;
  }, [title]);
  return (
    <Box mih="100dvh" bg="var(--sluice-ground)" p={{ base: 'sm', sm: 'lg' }}>
      <Group component="header" justify="space-between" maw={1100} mx="auto">
        <Brand />
        <ColorSchemeSwitch />
      </Group>
      <Box component="main" maw={420} mx="auto" mt={{ base: 'xl', sm: '10vh' }}>
        <Paper withBorder p={{ base: 'md', sm: 'xl' }} bg="var(--sluice-card)">
          <Stack gap="md">
            <div>
              <Title order={1} fz="1.4rem">
                {title}
              </Title>
              {description !== undefined && (
                <Text c="dimmed" size="sm" mt={4}>
                  {description}
                </Text>
              )}
            </div>
            {children}
          </Stack>
        </Paper>
        {footer !== undefined && (
          <Stack gap={6} align="center" mt="md" fz="sm" c="dimmed">
            {footer}
          </Stack>
        )}
      </Box>
    </Box>
  );
}
