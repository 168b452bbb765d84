import { Anchor, Center, Loader, Stack } from '@mantine/core';
import { IconMapOff } from '@tabler/icons-react';
import { type ErrorComponentProps, Link, useRouter } from '@tanstack/react-router';
import { EmptyState } from '../components/empty-state.tsx';
import { ErrorPanel } from '../components/error-panel.tsx';
import { PageHeader } from '../components/page-header.tsx';

/** A page whose code or data is loading. */
export function PagePending() {
  return (
    <Center mih="40vh" role="status" aria-label="Loading the page">
      <Loader />
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
