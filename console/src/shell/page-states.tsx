import { Anchor, Center, Loader, Stack, Text } from '@mantine/core';
import { useTimeout } from '@mantine/hooks';
import { IconMapOff } from '@tabler/icons-react';
import { type ErrorComponentProps, Link, useRouter } from '@tanstack/react-router';
import { useState } from 'react';
import { EmptyState } from '../components/empty-state.tsx';
import { ErrorPanel } from '../components/error-panel.tsx';
import { PageHeader } from '../components/page-header.tsx';

/** Time (ms) after which a loading page says why it may take long. */
const longMs = 5000;

/** A page whose code or data is loading. */
export function PagePending() {
  const [isLong, setLong] = useState(false);
  useTimeout(() => setLong(true), longMs, { autoInvoke: true });
  return (
    <Center mih="40vh" role="status" aria-label="Loading the page">
      <Stack align="center" gap="md">
        <Loader />
        {isLong && <Text size="sm">This takes long. It goes on by itself once the gateway can be reached.</Text>}
      </Stack>
    </Center>
  );
}

/** A page that crashed; the shell around it stays. */
export function PageError({ error, reset }: ErrorComponentProps) {
  const router = useRouter();
  const retry = (): void => {
    reset();
    void router.invalidate();
  };
  return (
    <Stack p="md">
      <ErrorPanel error={error} title="This page could not be shown" onRetry={retry} />
    </Stack>
  );
}

/** An address without a page. */
export function PageNotFound() {
  return (
    <>
      <PageHeader title="No such page" />
      <EmptyState title="There is no page at this address" icon={IconMapOff}>
        <Anchor renderRoot={(props) => <Link to="/" {...props} />}>Go to the overview</Anchor>
      </EmptyState>
    </>
  );
}
