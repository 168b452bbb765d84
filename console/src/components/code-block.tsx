import { Box, Group } from '@mantine/core';
import { CopyButton } from './copy-button.tsx';

/**
 * Code to read and copy. It scrolls horizontally if too wide.
 * @param shown displayed text, if shorter
 */
export function CodeBlock({ code, label, shown = code }: { code: string; label: string; shown?: string }) {
  return (
    <Box pos="relative">
      <Group justify="flex-end" mb={4}>
        <CopyButton value={code} />
      </Group>
      <Box
        component="pre"
        m={0}
        p="sm"
        fz="xs"
        ff="monospace"
        ta="left"
        // Scrollable, so it must be focusable by keyboard.
        tabIndex={0}
        role="region"
        aria-label={label}
        bg="var(--sluice-ground)"
        bd="1px solid var(--sluice-line)"
        bdrs="md"
        style={{ overflowX: 'auto' }}
      >
        <code>{shown}</code>
      </Box>
    </Box>
  );
}
