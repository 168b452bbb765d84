import { NavLink, Stack, Text } from '@mantine/core';
import { Link, useLocation } from '@tanstack/react-router';
import { useSession } from '../api/session.ts';
import { type NavigationEntry, navigation } from './navigation.ts';

/** The list of pages. `onGo` closes the list if it covers the page. */
export function NavigationLinks({ onGo }: { onGo: () => void }) {
  const { user } = useSession();
  const own = navigation.filter((entry) => entry.isForOperators !== true);
  const operators = navigation.filter((entry) => entry.isForOperators === true);
  return (
    <Stack gap={4}>
      {own.map((entry) => (
        <NavigationLink key={entry.label} entry={entry} onGo={onGo} />
      ))}
      {user.role === 'operator' && operators.length > 0 && (
        <>
          <Text component="h2" size="xs" fw={600} c="dimmed" mt="md" mb={4} px="sm">
            Operation
          </Text>
          {operators.map((entry) => (
            <NavigationLink key={entry.label} entry={entry} onGo={onGo} />
          ))}
        </>
      )}
    </Stack>
  );
}

function NavigationLink({ entry, onGo }: { entry: NavigationEntry; onGo: () => void }) {
  const path = useLocation({ select: ({ pathname }) => pathname });
  const isHere = entry.to === '/' ? path === '/' : path === entry.to || path.startsWith(`${entry.to}/`);
  return (
    <NavLink
      renderRoot={(props) => <Link to={entry.to} {...props} />}
      label={entry.label}
      leftSection={<entry.icon size={18} stroke={1.7} aria-hidden />}
      active={isHere}
      aria-current={isHere ? 'page' : undefined}
      onClick={onGo}
      style={{ borderRadius: 'var(--mantine-radius-md)' }}
    />
  );
}
