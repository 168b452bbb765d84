import { Paper, Skeleton, Text } from '@mantine/core';

/** A number with its name; keeps its space while loading. */
export function StatTile({
  label,
  value,
  hint,
  isLoading = false,
}: {
  label: string;
  value: string;
  hint?: string | undefined;
  isLoading?: boolean;
}) {
  return (
    <Paper withBorder p="md" bg="var(--sluice-card)">
      <Text size="sm" c="dimmed">
        {label}
      </Text>
      <Skeleton visible={isLoading} width={isLoading ? '60%' : '100%'}>
        <Text
          // A millionth of a dollar has many digits, and must stay on one line.
          fz={value.length > 9 ? '1.05rem' : 'clamp(1.1rem, 1.9vw, 1.5rem)'}
          fw={650}
          lh={1.5}
          className="numbers"
          style={{ overflowWrap: 'anywhere' }}
        >
          {value}
        </Text>
      </Skeleton>
      <Text size="xs" c="dimmed" mih="1.2em" className="numbers">
        {isLoading ? '' : hint}
      </Text>
    </Paper>
  );
}
