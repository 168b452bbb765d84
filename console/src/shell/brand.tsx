import { Group, Text } from '@mantine/core';
import { Link } from '@tanstack/react-router';

/** The product's logo and name, linking to the overview. */
export function Brand() {
  return (
    <Link to="/" aria-label="Sluice, overview" style={{ color: 'inherit', textDecoration: 'none' }}>
      <Group gap={8} wrap="nowrap">
        <img src="/console/favicon.svg" alt="" width={28} height={28} />
        <Text fw={700} fz="lg" lts="-0.02em">
          Sluice
        </Text>
      </Group>
    </Link>
  );
}
