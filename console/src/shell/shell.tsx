import { Alert, AppShell, Burger, Container, Group } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { IconAlertTriangle } from '@tabler/icons-react';
import { Outlet, useLocation } from '@tanstack/react-router';
import { useEffect, useRef } from 'react';
import { useSession } from '../api/session.ts';
import { TextLink } from '../components/text-link.tsx';
import { AccountMenu } from './account-menu.tsx';
import { Brand } from './brand.tsx';
import { ColorSchemeSwitch } from './color-scheme-switch.tsx';
import { IdSearch } from './id-search.tsx';
import { NavigationLinks } from './navigation-links.tsx';

/** The frame of every page after sign-in. */
export function Shell() {
  const [isOpen, { toggle, close }] = useDisclosure(false);
  const content = useContentFocus();
  const { account, user } = useSession();
  return (
    <AppShell
      header={{ height: 60 }}
      navbar={{ width: 220, breakpoint: 'sm', collapsed: { mobile: !isOpen } }}
      padding={{ base: 'sm', sm: 'lg' }}
    >
      <a className="skip-link" href="#content">
        Skip to the content
      </a>
      <AppShell.Header bg="var(--sluice-card)">
        <Group h="100%" px="md" justify="space-between" wrap="nowrap" gap="xs">
          <Group gap="sm" wrap="nowrap">
            <Burger
              opened={isOpen}
              onClick={toggle}
              hiddenFrom="sm"
              size="sm"
              aria-label={isOpen ? 'Close the navigation' : 'Open the navigation'}
              aria-expanded={isOpen}
            />
            <Brand />
          </Group>
          <Group gap="xs" wrap="nowrap">
            <IdSearch />
            <ColorSchemeSwitch />
            <AccountMenu />
          </Group>
        </Group>
      </AppShell.Header>
      <AppShell.Navbar p="sm" bg="var(--sluice-card)" aria-label="Pages" style={{ overflowY: 'auto' }}>
        <NavigationLinks onGo={close} />
      </AppShell.Navbar>
      <AppShell.Main id="content" tabIndex={-1} ref={content} bg="var(--sluice-ground)">
        <Container size={1200} p={0}>
          {user.authenticator === 'required' && (
            <Alert
              color="yellow"
              mb="lg"
              title="Operators need two-step sign-in here"
              icon={<IconAlertTriangle aria-hidden />}
            >
              <TextLink to="/settings">Set it up in your settings</TextLink> to get the rights of an operator.
            </Alert>
          )}
          {account.suspended && (
            <Alert color="red" mb="lg" title="This account is suspended" icon={<IconAlertTriangle aria-hidden />}>
              Its keys are refused until an operator of this gateway lifts the suspension.
            </Alert>
          )}
          {!account.suspended && account.balance !== null && account.balance <= 0 && (
            <Alert color="yellow" mb="lg" title="No credit is left" icon={<IconAlertTriangle aria-hidden />}>
              Requests that cost something are refused until an operator of this gateway adds some.
            </Alert>
          )}
          <Outlet />
        </Container>
      </AppShell.Main>
    </AppShell>
  );
}

/** After navigation, keyboard and screen reader continue at the page's content, not at the link that led there. */
function useContentFocus() {
  const content = useRef<HTMLElement>(null);
  const path = useLocation({ select: ({ pathname }) => pathname });
  const last = useRef(path);
  useEffect(() => {
    if (last.current === path) return;
    last.current = path;
    content.current?.focus({ preventScroll: true });
  }, [path]);
  return content;
}
