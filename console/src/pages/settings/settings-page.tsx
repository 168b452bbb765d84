import { SimpleGrid, Stack } from '@mantine/core';
import { PageHeader } from '../../components/page-header.tsx';
import { AuthenticatorCard } from './authenticator-card.tsx';
import { PasswordCard } from './password-card.tsx';
import { ProfileCard } from './profile-card.tsx';
import { SessionsCard } from './sessions-card.tsx';

/** The user's own profile, password, authenticator and sessions. */
export function SettingsPage() {
  return (
    <>
      <PageHeader title="Settings" description="Your profile, password, two-step sign-in and sessions." />
      <Stack gap="md">
        <SimpleGrid cols={{ base: 1, md: 2 }} spacing="md">
          <ProfileCard />
          <PasswordCard />
          <AuthenticatorCard />
        </SimpleGrid>
        <SessionsCard />
      </Stack>
    </>
  );
}
