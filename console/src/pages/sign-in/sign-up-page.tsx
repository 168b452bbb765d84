import { Alert, Button, Stack, Text, TextInput } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { signIn, signUp } from '../../api/auth.ts';
import { RequestError } from '../../api/request.ts';
import { settingsQuery } from '../../api/settings.ts';
import { FormError } from '../../components/error-panel.tsx';
import { NewPasswordInput } from '../../components/new-password-input.tsx';
import { readForm } from '../../components/read-form.ts';
import { TextLink } from '../../components/text-link.tsx';
import { OutsideLayout } from '../../shell/outside-layout.tsx';

const route = getRouteApi('/sign-up');

/** Creates a user with an own account, and signs them in. */
export function SignUpPage() {
  const search = route.useSearch();
  const navigate = useNavigate();
  const settings = useQuery(settingsQuery);
  const sendsMail = settings.data?.mail ?? false;
  const create = useMutation({
    mutationFn: async (values: { name: string; email: string; password: string }) => {
      await signUp(values);
      if (sendsMail) return;
      await signIn({ ...values, rememberMe: true }).catch((error: unknown) => {
        const isKnown = error instanceof RequestError && error.code === 'invalid_email_or_password';
        throw isKnown
          ? new Error('You cannot sign in with this password: the address may have an account already.')
          : error;
      });
      await navigate({ to: search.return ?? '/', replace: true });
    },
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
  if (create.isSuccess && sendsMail) {
    return (
      <OutsideLayout title="Sign up" footer={footer}>
        <Alert color="green" role="status" title="Look into your mail">
          A mail is on its way to you. Open the link in it to confirm your address, and sign in then.
        </Alert>
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
          <TextInput label="Email" name="email" type="email" autoComplete="username" required />
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
