import { Button, Stack, Text, TextInput } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { signUp } from '../../api/auth.ts';
import { settingsQuery } from '../../api/settings.ts';
import { FormError } from '../../components/error-panel.tsx';
import { NewPasswordInput } from '../../components/new-password-input.tsx';
import { readForm } from '../../components/read-form.ts';
import { TextLink } from '../../components/text-link.tsx';
import { OutsideLayout } from '../../shell/outside-layout.tsx';

const route = getRouteApi('/sign-up');

/** Makes a user with an account of their own, and signs them in. */
export function SignUpPage() {
  const search = route.useSearch();
  const navigate = useNavigate();
  const settings = useQuery(settingsQuery);
  const create = useMutation({
    mutationFn: signUp,
    onSuccess: () => navigate({ to: search.return ?? '/', replace: true }),
  });
  const footer = (
    <span>
      Already have an account?{' '}
      <TextLink to="/sign-in" search={search}>
        Sign in
      </TextLink>
    </span>
  );
  if (settings.data?.sign_up === false) {
    return (
      <OutsideLayout title="Sign up" footer={footer}>
        <Text size="sm">This gateway takes no new accounts by itself. Ask its operator for one.</Text>
      </OutsideLayout>
    );
  }
  return (
    <OutsideLayout title="Sign up" description="An account has its own keys, usage and balance." footer={footer}>
      <form
        onSubmit={(event) => {
          const { name = '', email = '', password = '' } = readForm(event);
          create.mutate({ name, email, password });
        }}
      >
        <Stack gap="sm">
          <TextInput label="Name" name="name" autoComplete="name" required maxLength={100} autoFocus />
          <TextInput label="E-mail" name="email" type="email" autoComplete="username" required />
          <NewPasswordInput label="Password" name="password" />
          <FormError error={create.error} />
          <Button type="submit" loading={create.isPending} fullWidth>
            Sign up
          </Button>
        </Stack>
      </form>
    </OutsideLayout>
  );
}
