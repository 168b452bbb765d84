import { Box, Text } from '@mantine/core';
import type { ReactNode } from 'react';

/** Names and values as a list; lines without a value are left out. */
export function Facts({ lines }: { lines: Readonly<Record<string, ReactNode>> }) {
  return (
    <Box
      component="dl"
      m={0}
      style={{ display: 'grid', gridTemplateColumns: 'minmax(6rem, max-content) 1fr', gap: '0.4rem 1.25rem' }}
    >
      {Object.entries(lines)
        .filter(([, value]) => value !== null && value !== undefined && value !== '')
        .map(([name, value]) => (
          <Box key={name} style={{ display: 'contents' }}>
            <Text component="dt" size="sm" c="dimmed">
              {name}
            </Text>
            <Text component="dd" size="sm" m={0} className="numbers" style={{ overflowWrap: 'anywhere' }}>
              {value}
            </Text>
          </Box>
        ))}
    </Box>
  );
}
